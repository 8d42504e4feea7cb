"""`readStream`: what Spark asks, what a query may do with the stream, and what ends it. Real Spark, emulated services."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from conftest_spark import SLOW_RECORDS as RECORDS
from conftest_spark import SLOW_SHARDS as SHARDS
from conftest_spark import configuration
from pipelines_of_tests import _failing, _minute, _not_needed, seen
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from sluice_checkpoints.errors import Fenced, LeaseHeld, Refused
from sluice_consumer import embedded
from sluice_consumer.config import Config, StreamConfig
from sluice_consumer.embedded import LeaseLost
from sluice_consumer.process import wiring
from sluice_consumer.spark import features
from sluice_consumer.streaming import jobs
from sluice_consumer.streaming import stream_source as streaming
from sluice_consumer.streaming.stream_source import Source

pytestmark = pytest.mark.spark
LEASE = 12.0  # seconds; threads of a busy process beat late
PAUSE = threading.Event()  # never set
WINDOWS = "window(approximateArrivalTimestamp, '1 second') AS w"


@pytest.fixture
def config(slow_stream: StreamConfig) -> Config:
    return replace(configuration(slow_stream, "pipelines_of_tests:collect", max_records_per_shard=8), lease_duration_seconds=LEASE)


def run(source: Source, stream: DataFrame, directory: Path, function: Callable[[DataFrame, int], None]) -> None:
    writer = stream.writeStream.foreachBatch(function).option("checkpointLocation", str(directory)).trigger(availableNow=True)
    source.start(writer).awaitTermination()


def numbers(batch: DataFrame) -> list[int]:
    return sorted(int(row.data) for row in batch.collect())


def offsets(directory: Path) -> list[int]:
    logs = sorted((int(path.name), path) for path in (directory / "offsets").glob("[0-9]*"))
    return [json.loads(path.read_text().splitlines()[-1])["batch"] for _, path in logs]


def committed(config: Config) -> tuple[int, bool]:
    row = wiring.store(config).consumer()
    assert row is not None
    return row.committed, row.released


@pytest.mark.slow
def test_the_loop_goes_on_where_a_query_ended_and_then_its_directory_is_too_old(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    found: dict[tuple[str, int], list[int]] = {}

    def keep(batch: DataFrame, _number: int) -> None:
        assert batch.count() == len(numbers(batch))
        found[source.consumer, source.batch] = numbers(batch)

    with streaming.source(spark, config, tell=seen.append) as source:
        run(source, source.load(), tmp_path / "one", keep)
    last, free = committed(config)
    assert free
    assert last > 2
    assert [key for _, key in found] == list(range(1, last + 1)) == offsets(tmp_path / "one")
    assert sorted(n for batch in found.values() for n in batch) == list(range(RECORDS))
    seen.clear()
    for _ in range(2):  # each commits a batch at least
        embedded.run(spark, config, until="tip", tell=lambda _: None)
    assert not any(numbers for _, numbers in seen)
    with streaming.source(spark, config) as source, pytest.raises(PySparkException, match="restored from a backup"):
        run(source, source.load(), tmp_path / "one", keep)


@pytest.mark.slow
def test_state_is_right_and_batches_without_data_disturb_no_number(spark: SparkSession, aws: StreamConfig, config: Config, tmp_path: Path) -> None:
    """A watermark closes windows in batches that read nothing; duplicates are dropped over batches."""
    client = boto3.client("kinesis", endpoint_url=aws.kinesis_endpoint, region_name=aws.region)
    name = f"state-{tmp_path.name}"
    client.create_stream(StreamName=name, ShardCount=1)
    client.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    for n in range(30):
        client.put_record(StreamName=name, Data=str(n % 10).encode(), PartitionKey="k")
        PAUSE.wait(0.1)
    config = replace(config, stream=replace(aws, name=name))
    with streaming.source(spark, config) as source:
        once = source.load().withWatermark("approximateArrivalTimestamp", "1 second").dropDuplicatesWithinWatermark(["data"])
        counts = once.selectExpr(WINDOWS).groupBy("w").count()
        writer = counts.writeStream.format("memory").queryName("windows").outputMode("append")
        query = source.start(writer.option("checkpointLocation", str(tmp_path / "c")))
        query.processAllAvailable()
        query.stop()
        rows = spark.table("windows").collect()
    logged = offsets(tmp_path / "c")
    assert logged == sorted(logged)
    assert len(set(logged)) < len(logged), "there was no batch without data, and the test shows nothing"
    assert committed(config)[0] == logged[-1]
    assert rows
    assert len({row.w for row in rows}) == len(rows)


def test_a_failed_job_that_the_function_swallowed_keeps_the_batch_open(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    """Spark counts it as done and asks for the next batch; the query ends. Another query's failed job is nobody's business."""

    def swallow(batch: DataFrame, _number: int) -> None:
        with pytest.raises(PySparkException):
            batch.selectExpr("raise_error('no')").collect()

    with pytest.raises(PySparkException, match="JobsNotDone"), streaming.source(spark, config) as source:
        run(source, source.load(), tmp_path, swallow)
    assert committed(config) == (0, False)


def test_a_failed_job_outside_of_any_query_keeps_the_batch_open_too(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    """The batch as a whole is a query of Spark's, which returns although its function swallowed a failed job."""

    def swallow(batch: DataFrame, _number: int) -> None:
        with pytest.raises(Exception, match="a task fails"):
            batch.rdd.mapPartitions(_failing).collect()

    with pytest.raises(PySparkException, match=r"JobsNotDone.*ValueError: a task fails"), streaming.source(spark, config) as source:
        run(source, source.load(), tmp_path, swallow)
    assert committed(config) == (0, False)


def test_a_query_ends_whose_function_leaves_a_job_that_reads(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    """Adaptive execution ends a join with nothing at once; what the batch holds is committed when its job is over."""
    found: list[int] = []
    seen.clear()

    def join(batch: DataFrame, _number: int) -> None:
        found.append(batch.count())
        _not_needed(batch)

    with streaming.source(spark, config) as source:
        run(source, source.load(), tmp_path, join)
    assert sum(found) == RECORDS
    assert any(seen)
    assert committed(config) == (len(found), True)


def test_a_query_started_by_its_writer_is_refused(spark: SparkSession, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows its jobs. It would wait for ever after its first batch, without a word; where Spark names no start, before it."""
    monkeypatch.setattr(jobs, "START_SECONDS", 0.2)
    with streaming.source(spark, config) as source:
        writer = source.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        query = writer.start()
        with pytest.raises(PySparkException, match=r"start it by source\.start\(writer\)"):
            query.awaitTermination()
    nothing_was_read = not features.names_the_start()
    assert committed(config) == (0, nothing_was_read)


@pytest.mark.slow
def test_an_error_of_the_function_ends_the_query_and_the_batch_comes_again(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    found: list[list[int]] = []

    def fail(batch: DataFrame, _number: int) -> None:
        found.append(numbers(batch))
        raise RuntimeError("the sink is full")

    with pytest.raises(PySparkException, match="the sink is full"), streaming.source(spark, config) as source:
        run(source, source.load(), tmp_path, fail)
    assert committed(config) == (0, False)
    with streaming.source(spark, config) as source:
        run(source, source.load(), tmp_path, lambda batch, _: found.append(numbers(batch)))
    assert found[0] == found[1]
    assert sorted(n for batch in found[1:] for n in batch) == list(range(RECORDS))


def collect(batch: DataFrame, _number: int) -> None:
    batch.collect()


def test_a_second_source_on_the_table_and_a_second_use_of_the_source_are_refused(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    """The first by the lease; of a union Spark makes two readers that know nothing of each other."""
    drain = threading.Event()
    with streaming.source(spark, config) as source:
        PAUSE.wait(LEASE / 3)
        with pytest.raises(LeaseHeld):
            embedded.run(spark, config, drain=drain)
        stream = source.load()
        twice = stream.select("shardId").union(source.load().select("shardId"))
        with pytest.raises(PySparkException, match="read this source once"):
            run(source, twice, tmp_path, collect)
        with pytest.raises(Refused, match="another source for another query"):
            source.start(stream.writeStream.format("noop"))
    assert len(wiring.store(config).shards()) == SHARDS


def test_a_query_whose_lease_was_taken_is_stopped(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    begun = threading.Event()

    def steal() -> None:
        begun.wait(120)
        store = wiring.store(config)
        row = store.consumer()
        assert row is not None
        assert store.take(row, replace(row, token="thief")) is not None

    def long(batch: DataFrame, _number: int) -> None:
        begun.set()
        batch.rdd.mapPartitions(_minute).collect()

    thief = threading.Thread(target=steal)
    thief.start()
    with pytest.raises((Fenced, LeaseLost)), streaming.source(spark, config) as source:
        run(source, source.load(), tmp_path, long)
    thief.join()
    assert not spark.streams.active


def test_a_stream_without_a_source_says_what_is_missing(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    with streaming.source(spark, config):
        stream: Any = spark.readStream.format("sluice").load()
        with pytest.raises(PySparkException, match=r"sluice_consumer\.streaming\.source"):
            stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start().awaitTermination()


def test_another_source_in_the_query_is_read_beside_ours(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    """Where Spark names no start, ours is found among the sources of the query; there `availableNow` cannot hold the other one, and is refused."""
    other = spark.readStream.format("rate").load().select(F.lit(None).cast("string").alias("shardId"), "value")
    found: list[int] = []

    def keep(batch: DataFrame, _number: int) -> None:
        found.extend(row.value for row in batch.where("shardId is not null").collect())

    with streaming.source(spark, config) as source:
        both = source.load().selectExpr("shardId", "cast(decode(data, 'UTF-8') as bigint) AS value").union(other)
        writer = both.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
        if not features.ends_by_itself():
            with pytest.raises(Refused, match="beside another streaming source"):
                source.start(writer.trigger(availableNow=True))
        query = source.start(writer.trigger(processingTime="0 seconds"))
        while len(found) < RECORDS and query.isActive:
            PAUSE.wait(0.1)
    assert sorted(found) == list(range(RECORDS))
