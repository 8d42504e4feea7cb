"""The sink `delta`, with Delta's own library."""

from __future__ import annotations

import pytest
from conftest_sinks import Batch, has_class, info
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import delta
from sluice_consumer.sinks.delta import PROVIDER

JSON = {"decode": "json", "schema": "id BIGINT, name STRING"}
pytestmark = pytest.mark.spark


@pytest.fixture
def place(spark: SparkSession, disk: str) -> str:
    """A path without a table."""
    if "DeltaCatalog" not in str(spark.conf.get("spark.sql.catalog.spark_catalog", "")):
        pytest.skip("not run: this Spark's session has no Delta")
    return f"{disk}/orders"


def ids(spark: SparkSession, place: str) -> list[int]:
    """What readers see."""
    return sorted(row.id for row in spark.read.format("delta").load(place).collect())


def test_each_record_is_there_once_though_batches_come_again(spark: SparkSession, place: str, batch: Batch) -> None:
    """Delta skips a version that its log has."""
    for number, numbers in ((1, range(10)), (1, range(10)), (2, range(10, 15)), (1, range(10)), (2, range(10, 15))):
        delta(batch(numbers), info(number), path=place, **JSON)
    assert ids(spark, place) == list(range(15))


def test_two_consumers_write_to_one_table(spark: SparkSession, place: str, batch: Batch) -> None:
    """Each has its version."""
    for consumer, numbers in (("a", [1]), ("b", [2]), ("a", [1]), ("b", [2])):
        delta(batch(numbers), info(1, consumer), path=place, **JSON)
    assert ids(spark, place) == [1, 2]


def test_a_spark_without_delta_is_refused_before_the_first_batch(spark: SparkSession) -> None:
    """With the way out."""
    if has_class(spark, PROVIDER):
        pytest.skip("not run: this Spark has Delta")
    with pytest.raises(Refused, match=r"this Spark has no Delta; use an image with it"):
        delta.prepare(spark, {"path": "file:///orders"})


@pytest.mark.parametrize("args", [{}, {"path": "file:///orders", "table": "orders"}])
def test_one_place_is_needed(spark: SparkSession, args: dict[str, str]) -> None:
    """A path or a table."""
    with pytest.raises(Refused, match="needs one of path and table"):
        delta.prepare(spark, args)
