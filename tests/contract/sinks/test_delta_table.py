"""The sink `delta`, with Delta's own library."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest_sinks import BY_LOOKUP, Batch, has_class, info
from pyspark.sql import SparkSession
from sink_pipelines import JSON

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import delta
from sluice_consumer.sinks.delta.table import PROVIDER, SETTINGS, DeltaTable
from sluice_consumer.sinks.options import RowOptions

pytestmark = pytest.mark.spark


@pytest.fixture
def place(spark: SparkSession, disk: str) -> str:
    if "DeltaCatalog" not in str(spark.conf.get("spark.sql.catalog.spark_catalog", "")):
        pytest.skip("not run: this Spark's session has no Delta")
    return f"{disk}/orders"


def ids(spark: SparkSession, place: str) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(place).collect())


def test_each_record_is_there_once_though_batches_come_again(spark: SparkSession, place: str, batch: Batch) -> None:
    """Delta skips a version that its log has."""
    for number, numbers in ((1, range(10)), (1, range(10)), (2, range(10, 15)), (1, range(10)), (2, range(10, 15))):
        delta(batch(numbers), info(number), path=place, create=True, **JSON)
    assert ids(spark, place) == list(range(15))


def test_a_batch_that_is_held_is_not_transformed_again(spark: SparkSession, place: str, batch: Batch, lookup_down: Callable[[], None]) -> None:
    """What raises then would pass for poison, and a batch that is held would be shortened."""
    args: dict[str, Any] = {"path": place, "create": True, "transform": BY_LOOKUP, "decode": "json", "schema": "id BIGINT"}
    delta(batch(range(4)), info(1), **args)
    lookup_down()
    delta(batch(range(4)), info(1), **args)
    assert ids(spark, place) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="nonsense"):
        delta(batch([4]), info(2), **args)


def test_two_consumers_write_to_one_table(spark: SparkSession, place: str, batch: Batch) -> None:
    for consumer, numbers in (("a", [1]), ("b", [2]), ("a", [1]), ("b", [2])):
        delta(batch(numbers), info(1, consumer), path=place, create=True, **JSON)
    assert ids(spark, place) == [1, 2]


def test_a_spark_without_delta_is_refused_before_the_first_batch(spark: SparkSession) -> None:
    if has_class(spark, PROVIDER):
        pytest.skip("not run: this Spark has Delta")
    with pytest.raises(Refused, match=r"this Spark has no Delta; use an image with it"):
        delta.prepare(spark, {"path": "file:///orders"})


@pytest.mark.parametrize("args", [{}, {"path": "file:///orders", "table": "orders"}])
def test_one_place_is_needed(spark: SparkSession, args: dict[str, str]) -> None:
    with pytest.raises(Refused, match="needs one of path and table"):
        delta.prepare(spark, args)


def test_a_table_is_made_if_there_is_none_when_that_is_asked_for(spark: SparkSession, place: str, batch: Batch) -> None:
    for number in (1, 2):
        delta(batch([number]), info(number), path=place, create=True, partition="day", **JSON)
    assert ids(spark, place) == [1, 2]
    (row,) = spark.sql(f"DESCRIBE DETAIL delta.`{place}`").collect()
    assert row.partitionColumns == ["arrival_day"]
    history = [row.operation for row in spark.sql(f"DESCRIBE HISTORY delta.`{place}`").collect()]
    assert history == ["WRITE", "WRITE", "CREATE TABLE"]


def test_two_drivers_make_a_table_at_once(spark: SparkSession, place: str, batch: Batch) -> None:
    table, rows = DeltaTable("pipeline.args.path", place, named=False), batch([1]).selectExpr("CAST(sequenceNumber AS BIGINT) AS id", "data AS name")
    barrier = threading.Barrier(2)

    def make() -> None:
        barrier.wait()
        table.create(rows, RowOptions())

    with ThreadPoolExecutor(2) as pool:
        for made in [pool.submit(make) for _ in range(2)]:
            made.result()
    assert table.exists(spark)
    assert ids(spark, place) == []


def test_a_path_without_a_table_is_refused_with_what_makes_one(spark: SparkSession, place: str, batch: Batch) -> None:
    """Before the first batch, and in it: nobody makes a table by mistyping its path. The statement that is told makes it."""
    with pytest.raises(
        Refused, match=r"pipeline\.args\.path: .*there is no such Delta table; set pipeline.args.create: true, or create it: CREATE"
    ) as told:
        delta.prepare(spark, {"path": place, **JSON})
    with pytest.raises(Refused, match="there is no such Delta table"):
        delta(batch([1]), info(1), path=place, **JSON)
    assert not Path(place.removeprefix("file://")).exists()
    spark.sql(str(told.value).partition("create it: ")[2])
    delta(batch([1]), info(1), path=place, **JSON)
    assert ids(spark, place) == [1]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_session_without_deltas_settings_is_refused_with_the_lines_to_add(spark: SparkSession, place: str, name: str) -> None:
    """They count when a session starts."""
    assert place
    before = spark.conf.get(name)
    jvm: Any = spark._jsparkSession
    jvm.sessionState().conf().setConfString(name, "another")
    try:
        with pytest.raises(Refused, match=rf"sparkConf: {name}: does not name Delta; start the session with spark.sql.extensions: io\.delta"):
            delta.prepare(spark, {"path": place})
    finally:
        jvm.sessionState().conf().setConfString(name, before)
