"""A batch from Python values, laid out as the data source lays out a real one; and its `info`."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluice_consumer.batches import planner
from sluice_consumer.config import BatchConfig
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks.foreach import DIGITS, SUB_DIGITS
from sluice_consumer.spark.schema import SCHEMA

SHARD = "shardId-000000000000"
FIRST = 49_600_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000  # as long as those of Kinesis
ARRIVAL = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)


@dataclass(frozen=True)
class TestRecord:
    """A record whose details matter to a test. Details that are left out get a default.

    Attributes:
        data: the payload: bytes, text (stored as UTF-8), or any value that JSON has.
        key: its partition key.
        shard: id of its shard.
        sequence: its sequence number; if omitted, one more than that of the previous record.
        sub: index in a KPL aggregate.
        arrival: with a time zone; if omitted, 1 ms after the previous record.
    """

    __test__ = False  # pytest: no class of tests

    data: Any
    key: str = "key"
    shard: str = SHARD
    sequence: str | None = None
    sub: int = 0
    arrival: datetime.datetime | None = None


def batch(spark: SparkSession, values: Iterable[Any], *, stream: str = "orders", tasks: int | None = None) -> DataFrame:
    """A batch as `process` gets it: the same columns, each shard's records together and in order, several shards in a task.

    Args:
        spark: the session.
        values: records in the order of their arrival: `TestRecord`s, or payloads as `TestRecord.data` takes them.
        stream: name of the stream.
        tasks: so many tasks share the shards; left out, as many as a consumer in this session would have.

    Raises:
        ValueError: an arrival has no time zone. TypeError: JSON has no form for a payload.
    """
    shards = _shards(values, stream)
    ids = sorted(shards)
    cores = tasks or spark.sparkContext.defaultParallelism
    dealt = planner.deal(ids, cores, max(len(ids), 1) if tasks else BatchConfig().shards_per_task)
    groups = [[row for shard in group for row in shards[shard]] for group in dealt]
    rows = spark.sparkContext.parallelize(groups or [[]], max(len(groups), 1)).flatMap(lambda group: group)
    return spark.createDataFrame(rows, SCHEMA)


def info(number: int = 1, consumer: str = "test", *, replay: bool = False, shards: Iterable[str] = (SHARD,), **args: Any) -> BatchInfo:
    """What `process` gets beside its batch.

    Args:
        number: of the batch.
        consumer: with the number it is the key of the batch.
        replay: an earlier epoch had begun the batch.
        shards: ids of the shards in it.
        args: `info.args`.
    """
    return BatchInfo(consumer, number, replay=replay, stream="orders", shards=tuple(shards), args=args)


def shortened(batch: DataFrame) -> tuple[DataFrame, DataFrame] | None:
    """A batch as it comes again after failures, and the rest of it, which comes in the next one (docs/protocol.md, "Poison").

    The first keeps half of the records of the first shard; a shard of one record is kept whole. None: it has one record, and cannot be shortened.
    """
    place = f.concat(f.lpad("sequenceNumber", DIGITS, "0"), f.lpad(f.col("subSequenceNumber").cast("string"), SUB_DIGITS, "0"))
    places = sorted((row.shardId, row.place) for row in batch.select("shardId", place.alias("place")).collect())
    if len(places) <= 1:
        return None
    shard = places[0][0]
    inside = [position for of, position in places if of == shard]
    kept = (f.col("shardId") == shard) & (place <= inside[(len(inside) - 1) // 2])
    return batch.where(kept), batch.where(~kept)


def _shards(values: Iterable[Any], stream: str) -> Mapping[str, list[tuple[Any, ...]]]:
    shards = defaultdict[str, list[tuple[Any, ...]]](list)
    sequence, arrival = FIRST, ARRIVAL
    for value in values:
        record = value if isinstance(value, TestRecord) else TestRecord(value)
        sequence = int(record.sequence) if record.sequence is not None else sequence + 1
        arrival = _aware(record.arrival) if record.arrival else arrival + MILLISECOND
        shards[record.shard].append((record.key, _payload(record.data), stream, record.shard, str(sequence), record.sub, arrival))
    return shards


def _aware(arrival: datetime.datetime) -> datetime.datetime:
    if arrival.tzinfo is None:
        raise ValueError(f"arrival: {arrival} has no time zone; add tzinfo=datetime.UTC")
    return arrival


def _payload(data: Any) -> bytes:
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    return (data if isinstance(data, str) else json.dumps(data)).encode()
