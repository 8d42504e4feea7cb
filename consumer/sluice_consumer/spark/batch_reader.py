"""Reads one micro-batch in Spark's tasks (docs/protocol.md, "A batch").

The driver's loop makes the options; several shards share a task and are fetched by threads, for a task costs 40 ms of CPU and a shard 2. A worker
process keeps its connections between tasks.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial

from pyarrow import RecordBatch
from pyspark import TaskContext

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.dynamodb.http import DynamoHttp, http_client
from sluice_checkpoints.dynamodb.table import DynamoTable, Endpoint
from sluice_checkpoints.errors import LostRace, SluiceError
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.batch_writes import reader_key
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.kinesis.http import connect
from sluice_consumer.kinesis.shared_catalog import SharedCatalog
from sluice_consumer.poison import worker_errors
from sluice_consumer.shards.bind import ShardSource, Task, read_shard
from sluice_consumer.shards.ranges import BoundRange, Fetched, FetchRequest, Limits
from sluice_consumer.shards.reader import ShardReader
from sluice_consumer.shards.request_counts import DYNAMODB, KINESIS, RequestCounter
from sluice_consumer.spark.arrow import to_arrow
from sluice_consumer.spark.batch_read import BatchRead, Group, freeze

MOST_SHARDS = 1000  # in a task: the greatest `shardsPerTask`
READERS = 64  # that a worker process keeps: of consumers that share a session, and of an identity that has changed
MOST_READERS = 5000  # about 150 KB
REQUESTS = RequestCounter()  # of this worker process; tasks that follow each other carry what is left over


class ReadFailed(SluiceError):
    """Reading the batch failed, in a task: it is not a failure of `process`."""


class CancellableSource:
    """A source of shards until the task is over: what is fetched after that is not bound."""

    def __init__(self, source: ShardSource, over: threading.Event) -> None:
        self._source, self._over = source, over

    def fetch(self, place: FetchRequest, limits: Limits) -> Fetched:
        fetched = self._source.fetch(place, limits)
        self._check()
        return fetched

    def replay(self, bound: BoundRange) -> Fetched:
        self._check()
        return self._source.replay(bound)

    def wait(self, seconds: float) -> None:
        """Waits that long, or until the task is over."""
        self._over.wait(seconds)

    def _check(self) -> None:
        if self._over.is_set():
            raise LostRace("the task is over: Spark has all the rows that it wanted")


class BatchReader:
    """Reads the shards of a task."""

    def __init__(self, batch: BatchRead) -> None:
        self.batch = batch

    def read(self, partition: Group) -> Iterator[RecordBatch]:
        """Fetches and binds every shard of the task, each in its thread, and hands them over in the order of the group.

        Spark takes the order of a task's rows for determined. After a lost shuffle file it repeats only the map tasks that are missing. Rows that
        were dealt by their number (`repartition`, `zipWithUniqueId`, `sample`) would be lost or doubled in another order.

        Spark may have enough before the end (`take`, `limit`). Then no further shard is bound: its range would not be read.
        """
        worker_errors.install()
        with named():
            yield from self._read(partition)

    def _read(self, partition: Group) -> Iterator[RecordBatch]:
        store, reader, task = self._ports()
        over = threading.Event()
        source = CancellableSource(reader, over)
        task = replace(task, wait=source.wait)
        freeze("imported")
        rows = {row.id: with_room(store, task.epoch, row) for row in store.read(partition.shard_ids).values()}
        reads = [partial(read_shard, store, source, task, row) for row in rows.values()]
        with contextlib.closing(in_order(_threads(), reads, over)) as ranges:
            yield from to_arrow(ranges, self.batch.identity.name)
        freeze("read")

    def _ports(self) -> tuple[CheckpointStore, ShardReader, Task]:
        batch, context = self.batch, TaskContext.get()
        assert context is not None  # noqa: S101 - read() runs in tasks only
        key = reader_key(batch.generation, f"{context.stageId()}.{context.partitionId()}")
        task = Task(
            epoch=Epoch(batch.generation, ""),
            batch=batch.number,
            reader=TaskAttempt(key, context.taskAttemptId()),
            limits=batch.limits,
            lease_seconds=batch.lease_seconds,
            wait=time.sleep,
            requests=REQUESTS,
        )
        patience = Patience(listener=REQUESTS.listener(DYNAMODB))
        store = CheckpointStore(DynamoTable(batch.table, dynamodb(batch.stream.region, batch.dynamodb_endpoint), patience))
        return store, _reader(batch.identity, batch.stream, batch.generation), task


@contextlib.contextmanager
def named() -> Iterator[None]:
    """Whatever the block raises is an error of ours, whoever raised it.

    Raises:
        ReadFailed: it was none of ours.
    """
    try:
        yield
    except SluiceError:
        raise
    except Exception as error:
        raise ReadFailed(f"{type(error).__name__}: {error}; the batch is not committed and comes again") from error


def with_room(store: CheckpointStore, epoch: Epoch, row: ShardRow) -> ShardRow:
    """A row that has room for another reader: every action on a batch leaves one in each row that it reads, and a row holds 400 KB.

    Raises:
        SluiceError: this epoch has read the batch so often that there would soon be none.
    """
    if len(row.readers) < MOST_READERS:
        return row
    left = store.forget(epoch, row)
    if len(left.readers) < MOST_READERS:
        return left
    raise SluiceError(
        f"{row.id}: `process` has read batch {row.batch} in {counted(len(left.readers), 'task')} so far, and each reads the stream again; "
        "call batch.persist() before several actions, and batch.unpersist() after them"
    )


def in_order(threads: Executor, reads: Sequence[Callable[[], Fetched]], over: threading.Event) -> Generator[Fetched]:
    """What each read brings, in this order; they are made side by side, and each is let go of once it was handed over. Sets `over` at its end."""
    futures = deque(threads.submit(read) for read in reads)
    try:
        while futures:
            yield futures.popleft().result()
    finally:
        over.set()
        wait(futures)  # however it ends, nothing of this task continues after it


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """Those of this worker process, as many as a task ever had shards: to start thirty again was a fifth of a small batch's CPU in the worker."""
    return ThreadPoolExecutor(MOST_SHARDS, thread_name_prefix="shard")


@functools.cache
def dynamodb(region: str, endpoint: str | None) -> DynamoHttp:
    """The client of this worker process."""
    return http_client(Endpoint(region, endpoint), connections=32)


@functools.lru_cache(maxsize=READERS)
def _reader(identity: StreamIdentity, stream: StreamAddress, _generation: int) -> ShardReader:
    """Of one epoch: what a reader found of its shards may have expired by the next one."""
    listener = REQUESTS.listener(KINESIS)
    catalog = BotoStreamCatalog(stream, Patience(listener=listener))
    return ShardReader(connect(stream, listener), SharedCatalog(catalog), identity)
