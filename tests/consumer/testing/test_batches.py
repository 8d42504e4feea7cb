"""A batch from Python values is laid out as a real one."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import sluice_consumer
from sluice_consumer.batches import planner
from sluice_consumer.testing import TestRecord, batch, info

pytestmark = pytest.mark.spark


def test_payloads_are_bytes_text_or_json(spark: SparkSession) -> None:
    rows = batch(spark, [b"\x00\xff", "ä", {"id": 1}, [2]]).collect()
    assert [bytes(row.data) for row in rows] == [b"\x00\xff", "ä".encode(), b'{"id": 1}', b"[2]"]
    sequences, arrivals = [int(row.sequenceNumber) for row in rows], [row.approximateArrivalTimestamp for row in rows]
    assert sequences == list(range(sequences[0], sequences[0] + 4))
    assert arrivals == sorted(set(arrivals))


def test_the_columns_are_those_of_a_batch(spark: SparkSession) -> None:
    assert batch(spark, ["a"]).schema == batch(spark, []).schema == sluice_consumer.SCHEMA
    assert batch(spark, []).count() == 0


def test_whatever_matters_can_be_said(spark: SparkSession) -> None:
    moment = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
    record = TestRecord("x", key="k", shard="shardId-7", sequence="42", sub=3, arrival=moment)
    (row,) = batch(spark, [record], stream="clicks").selectExpr("*", "unix_seconds(approximateArrivalTimestamp) AS seconds").collect()
    assert (row.partitionKey, row.stream, row.shardId, row.sequenceNumber, row.subSequenceNumber) == ("k", "clicks", "shardId-7", "42", 3)
    assert row.seconds == moment.timestamp()


@pytest.mark.parametrize("tasks", [None, 1, 3])
def test_a_shards_records_are_neighbours_in_one_task_dealt_as_the_engine_deals(spark: SparkSession, tasks: int | None) -> None:
    names = [f"shardId-{n:02}" for n in range(20)]
    made = batch(spark, [TestRecord(str(n), shard=names[n % 20]) for n in range(60)], tasks=tasks)
    found: dict[int, list[Any]] = {}
    for row in made.withColumn("task", f.spark_partition_id()).collect():
        found.setdefault(row.task, []).append((row.shardId, int(row.data)))
    dealt = planner.deal(names, tasks or spark.sparkContext.defaultParallelism, 20 if tasks else 8)
    assert [found[task] for task in sorted(found)] == [[(name, int(name[-2:]) + 20 * n) for name in group for n in range(3)] for group in dealt]


def test_a_time_without_a_zone_is_refused(spark: SparkSession) -> None:
    """It would mean another moment on another machine."""
    with pytest.raises(ValueError, match="has no time zone"):
        batch(spark, [TestRecord("x", arrival=datetime.datetime(2026, 1, 1))])  # noqa: DTZ001 - what is refused


def test_the_info_of_a_batch_has_defaults(spark: SparkSession) -> None:  # noqa: ARG001 - for the mark
    made = info(2, path="/data")
    assert (made.consumer, made.batch, made.replay, made.stream, made.args) == ("test", 2, False, "orders", {"path": "/data"})
