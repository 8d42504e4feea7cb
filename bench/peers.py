"""What the consumer is compared with: a plain data source over boto3, and rows made of nothing, which is all that Spark itself costs.

`python peers.py '<run as JSON>'` reads batch after batch in a Spark of the consumer's own settings and prints a mark after each. The batches go
nowhere, or into a lake as Spark itself writes to one.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import boto3
import pyarrow as pa
from process_tree import cpu_by_kind
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType
from slab import Shape, records

from sluice_consumer.columns import DDL
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.spark import conf, python_workers, spark_home
from sluice_consumer.spark.arrow import ROWS, SCHEMA


@dataclass(frozen=True)
class PeerRun:
    """One run: `batches` times `records` of each of `shards`, from an endpoint or from nothing.

    Attributes:
        sink: where batches go: `noop`, or a kind of lake, into `target`.
        spark: further settings.
    """

    peer: str
    kinesis: str
    shards: int
    records: int
    size: int
    batches: int
    sink: str = "noop"
    target: str = ""
    spark: dict[str, str] = field(default_factory=dict)


class Part(InputPartition):
    def __init__(self, shards: list[int]) -> None:
        super().__init__(shards)
        self.shards = shards


class Reads(DataSourceReader):
    def __init__(self, run: PeerRun, batch: int) -> None:
        self.run, self.batch = run, batch

    def partitions(self) -> list[InputPartition]:
        return [Part(list(range(self.run.shards))[i::2]) for i in range(min(2, self.run.shards))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Part)
        for shard in partition.shards:
            yield from nothing(self.run) if self.run.peer == "nothing" else tuples(self.run, self.batch, shard)
        freeze_once()


class Peer(DataSource):
    @classmethod
    def name(cls) -> str:
        return "peer"

    def schema(self) -> str:
        freeze_once()
        return str(DDL)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - always ours
        freeze_once()
        return Reads(PeerRun(**json.loads(self.options["run"])), int(self.options["batch"]))


python_workers.fold_hang_ups()


@functools.cache
def freeze_once() -> None:
    """The peers have the consumer's advantages, too."""
    gc.collect()
    gc.freeze()


def nothing(run: PeerRun) -> Iterator[pa.RecordBatch]:
    for at in range(0, run.records, ROWS):
        yield _prebuilt(run.size).slice(0, min(ROWS, run.records - at))


@functools.cache
def _prebuilt(size: int) -> pa.RecordBatch:
    sequence, data, key, arrival = zip(*records(Shape(ROWS, size, 1_700_000_000_000)), strict=True)
    same = [pa.repeat(pa.scalar(value), ROWS) for value in ("bench", "shardId-000000000000", 0)]
    micros = pa.array([millis * 1000 for millis in arrival], pa.timestamp("us", tz="UTC"))
    return pa.record_batch([pa.array(key), pa.array(data), *same[:2], pa.array(sequence), same[2], micros], schema=SCHEMA)


def tuples(run: PeerRun, batch: int, shard: int) -> Iterator[tuple[Any, ...]]:
    """As one would write it: boto3, a tuple a record, the iterators kept from batch to batch."""
    api = _api(run.kinesis)
    left = run.records
    name = f"shardId-{shard:012d}"
    ask = {"StreamName": "bench", "ShardId": name, "ShardIteratorType": "TRIM_HORIZON"}
    iterator = api.get_shard_iterator(**ask)["ShardIterator"]
    head, _, _ = iterator.rpartition("|")
    iterator = f"{head}|{batch * run.records}"
    while left:
        page = api.get_records(ShardIterator=iterator, Limit=min(10_000, left))
        iterator, left = page["NextShardIterator"], left - len(page["Records"])
        for record in page["Records"]:
            at: datetime = record["ApproximateArrivalTimestamp"].astimezone(UTC)
            yield record["PartitionKey"], record["Data"], "bench", name, record["SequenceNumber"], 0, at


@functools.cache
def _api(endpoint: str) -> Any:
    return boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1")


def store(frame: DataFrame, run: PeerRun) -> None:
    """What one writes without Sluice: an append that is done once if nothing fails."""
    match run.sink:
        case "noop":
            frame.write.format("noop").mode("overwrite").save()
        case "iceberg":
            frame.writeTo(run.target).append()
        case kind:
            frame.write.format(kind).mode("append").save(run.target)


def main() -> None:
    run = PeerRun(**json.loads(sys.argv[1]))
    config = Config(StreamConfig("bench", "us-east-1"), CheckpointsConfig("bench"), PipelineConfig("a:b"), name="peer")
    settings = dict[str, Any](conf.settings(config, None, "local[2]") | {"spark.log.level": "ERROR"} | run.spark)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ |= spark_home.lean(os.environ)
    spark = SparkSession.builder.config(map=settings).getOrCreate()
    spark.dataSource.register(Peer)
    for batch in range(run.batches):
        begun = time.monotonic()
        frame = spark.read.format("peer").option("run", json.dumps(asdict(run))).option("batch", batch).load()
        store(frame, run)
        mark = {"batch": batch, "at": time.monotonic(), "cpu": cpu_by_kind(os.getpid())["cpu"], "seconds": time.monotonic() - begun}
        print("MARK", json.dumps(mark), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    import peers  # classes of __main__ cannot be sent to workers

    peers.main()
