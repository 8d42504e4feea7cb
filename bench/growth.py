"""How costs grow with the number of shards: a whole consumer with Spark, and the driver's part alone."""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from canned import Options
from consumer_run import Plan, kinesis, run
from pyspark.sql.types import StructType
from pyspark.sql.worker.plan_data_source_read import write_read_func_and_partitions
from slab import CBOR, Shape

from sluice_checkpoints.aws.side_by_side import side_by_side
from sluice_checkpoints.dynamodb.table import CONNECTIONS
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.stream.address import StreamAddress
from sluice_consumer.batches import bootstrap, planner
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.config import StartConfig
from sluice_consumer.shards.probes import KinesisProber, ProbeLimits, ProbeScheduler
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.spark.batch_reader import BatchRead
from sluice_consumer.spark.data_source import OPTION, SluiceDataSource
from sluice_lab.fakes.kinesis import MemoryKinesis
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

T = TypeVar("T")
SHARDS = (64, 256, 1000, 4000)
WARM_UP, BATCHES = 5, 10
CORES, SHARDS_A_TASK = 2, 32
CALL_SECONDS = 0.004


@dataclass(frozen=True)
class Grown:
    """Batches of so many shards: seconds to the first; medians of ms and CPU-ms; tasks, and bytes that travel to them."""

    shards: int
    batches: int
    first: float
    millis: float
    cpu: float
    tasks: int
    sent: int


def batches(shards: int, dynamodb: str) -> Grown:
    """A record every two seconds and shard, a noop sink, no interval."""
    shape = Shape(2000, 200, round(time.time() * 1000), 0.5)
    settings = {"intervalSeconds": 0, "shardsPerTask": SHARDS_A_TASK}
    begun = time.monotonic()
    first = 0.0
    with kinesis(Options(shards, shape, (CBOR,))) as endpoint:
        found = run(Plan(endpoint, dynamodb, "noop", settings, WARM_UP + BATCHES, 600.0))
        first = time.monotonic() - begun - sum(batch.seconds for batch in found.batches[1:])
    millis = statistics.median(batch.seconds * 1000 for batch in found.batches[WARM_UP:] or found.batches)
    marks = found.marks[-2:]
    cpu = (marks[-1]["cpu"] - marks[0]["cpu"]) * 1000 / (marks[-1]["batch"] - marks[0]["batch"]) if len(marks) > 1 else float("nan")
    groups = planner.deal([f"shardId-{number:012d}" for number in range(shards)], CORES, SHARDS_A_TASK)
    return Grown(shards, len(found.batches), first, millis, cpu, len(groups), sent(groups))


def sent(groups: tuple[tuple[str, ...], ...]) -> int:
    """Bytes that travel to all tasks of a batch: to each the function, and its partition."""
    read = BatchRead(StreamAddress("s", "us-east-1"), None, "t", MemoryStream("s").describe(), 1, 1, 20.0, Limits(1, 1), groups)
    source, schema, out = SluiceDataSource({OPTION: read.to_json()}), StructType(), io.BytesIO()
    write_read_func_and_partitions(out, reader=source.reader(schema), data_source=source, schema=schema, max_arrow_batch_size=1, binary_as_bytes=True)
    function = int.from_bytes(out.getvalue()[:4], "big")
    return function * len(groups) + len(out.getvalue()) - function


class SlowTable(MemoryTable):
    """A table whose calls take as long as DynamoDB's, as many at once as the client has connections."""

    seconds = 0.0

    def __init__(self) -> None:
        super().__init__(hook=self._waits)

    def side_by_side(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        return side_by_side(calls, CONNECTIONS)

    def _waits(self, when: str, _operation: str, _argument: object) -> None:
        if when == "before" and self.seconds:
            time.sleep(self.seconds)


class Nobody:
    def run(self, plan: BatchPlan) -> None:
        """See `Engine`."""


def alone(shards: int) -> tuple[float, ...]:
    """Seconds and CPU-milliseconds of a take-over; CPU of a plan; seconds and CPU of closes and commit; CPU of a round of probes."""
    stream, table = MemoryStream("s", shards), SlowTable()
    store = CheckpointStore(table)
    bootstrap.prepare(store, bootstrap.Seed("p", "id", stream.describe(), stream.list_shards()), StartConfig())
    _epoch(store, stream).begin()
    table.seconds = CALL_SECONDS
    consumer = _epoch(store, stream)
    took = _timed(consumer.begin)
    planned = _timed(consumer.plan)
    plan = consumer.plan()
    assert plan is not None
    closed = _timed(lambda: consumer.run(plan, Nobody()))
    client = MemoryKinesis(stream)
    probes = ProbeScheduler(lambda row: KinesisProber(client, row.id, row.end), limits=ProbeLimits(most=shards))
    probed = _timed(lambda: probes(tuple(consumer.view.rows.values())))
    return (*took, planned[1], *closed, probed[1])


def _epoch(store: CheckpointStore, stream: MemoryStream) -> Consumer:
    row = store.consumer()
    assert row is not None
    taken = store.take(row, row)
    assert taken is not None
    return Consumer(store, stream, Epoch(taken.generation, taken.token))


def _timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds, and CPU-milliseconds."""
    wall, cpu = time.monotonic(), time.process_time()
    call()
    return time.monotonic() - wall, (time.process_time() - cpu) * 1000
