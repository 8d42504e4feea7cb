"""The sink `delta`, with Delta's own library, while the table's owner acts on it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest_sinks import Batch, info
from pyspark.sql import SparkSession
from sink_pipelines import JSON

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import delta

pytestmark = pytest.mark.spark


@pytest.fixture
def place(spark: SparkSession, disk: str) -> str:
    if "DeltaCatalog" not in str(spark.conf.get("spark.sql.catalog.spark_catalog", "")):
        pytest.skip("not run: this Spark's session has no Delta")
    return f"{disk}/orders"


@pytest.fixture
def three(spark: SparkSession, place: str, batch: Batch) -> SparkSession:
    """A session; the table has three batches of one record each in versions 1 to 3, and the third is open."""
    for number in (1, 2, 3):
        delta(batch([number]), info(number), path=place, create=True, **JSON)
    return spark


def ids(spark: SparkSession, place: str) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(place).collect())


def refusal(batch: Batch, place: str, number: int) -> str:
    with pytest.raises(Refused) as told:
        delta(batch([number]), info(number), path=place, **JSON)
    return str(told.value)


def statements(words: str) -> tuple[str, str]:
    found = re.search(r"(ALTER TABLE delta\.`[^`]+` SET TBLPROPERTIES \([^)]+\))\. .*(RESTORE TABLE delta\.`[^`]+` TO VERSION AS OF \d+)", words)
    assert found is not None, words
    return found[1], found[2]


def test_a_batch_that_a_restore_took_out_is_refused_and_added_to_the_table_as_it_is(three: SparkSession, place: str, batch: Batch) -> None:
    three.sql(f"RESTORE TABLE delta.`{place}` TO VERSION AS OF 2")
    words = refusal(batch, place, 3)
    assert "batch 3 of consumer c was added, and RESTORE (version 4) took it out of the table" in words
    three.sql(statements(words)[0])
    for number in (3, 3, 4):
        delta(batch([number]), info(number), path=place, **JSON)
    assert ids(three, place) == [1, 2, 3, 4]
    three.sql(f"RESTORE TABLE delta.`{place}` TO VERSION AS OF 6")  # 5: the property, 6: batch 3, 7: batch 4
    three.sql(statements(refusal(batch, place, 4))[0])
    for number in (4, 4):
        delta(batch([number]), info(number), path=place, **JSON)
    assert ids(three, place) == [1, 2, 3, 4]


def test_a_batch_that_a_restore_took_out_is_found_when_the_owner_brings_it_back(three: SparkSession, place: str, batch: Batch) -> None:
    three.sql(f"RESTORE TABLE delta.`{place}` TO VERSION AS OF 2")
    three.sql(statements(refusal(batch, place, 3))[1])
    for number in (3, 4):
        delta(batch([number]), info(number), path=place, **JSON)
    assert ids(three, place) == [1, 2, 3, 4]


def test_a_table_that_was_replaced_is_refused(three: SparkSession, place: str, batch: Batch) -> None:
    """Its log has the batches still."""
    three.sql(f"CREATE OR REPLACE TABLE delta.`{place}` USING delta AS SELECT 9L AS id, '' AS name")
    words = refusal(batch, place, 3)
    assert "CREATE OR REPLACE TABLE AS SELECT (version 4)" in words
    three.sql(statements(words)[0])
    delta(batch([3]), info(3), path=place, **JSON)
    assert ids(three, place) == [3, 9]


def test_a_table_that_forgets_batches_is_refused_with_the_statement_that_changes_it(spark: SparkSession, place: str, batch: Batch) -> None:
    delta(batch([1]), info(1), path=place, create=True, **JSON)
    spark.sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.setTransactionRetentionDuration' = 'interval 1 day')")
    with pytest.raises(Refused, match=r"has the property delta\.setTransactionRetentionDuration") as told:
        delta.prepare(spark, {"path": place, **JSON})
    assert refusal(batch, place, 2) == str(told.value)
    spark.sql(str(told.value).partition("Run: ")[2])
    for number in (1, 2):
        delta(batch([number]), info(number), path=place, **JSON)
    assert ids(spark, place) == [1, 2]


def test_a_table_by_its_name_is_looked_at_as_well(spark: SparkSession, place: str, batch: Batch) -> None:
    assert place
    spark.sql(f"CREATE TABLE owned_orders (id BIGINT, name STRING) USING delta LOCATION '{place}'")
    try:
        for number in (1, 2, 2):
            delta(batch([number]), info(number), table="owned_orders", **JSON)
        spark.sql("RESTORE TABLE owned_orders TO VERSION AS OF 1")
        with pytest.raises(Refused, match=r"ALTER TABLE owned_orders SET TBLPROPERTIES \('sluice\.anew\.c' = '3'\)"):
            delta(batch([2]), info(2), table="owned_orders", **JSON)
    finally:
        spark.sql("DROP TABLE owned_orders")


def test_consumers_in_one_table_and_two_attempts_at_one_batch_do_not_end_each_other(spark: SparkSession, place: str, batch: Batch) -> None:
    """Delta refuses the second commit of a `txnAppId`; the second attempt looks again, and finds the batch."""
    delta(batch([0]), info(1, "first"), path=place, create=True, **JSON)

    def consume(consumer: int) -> Any:
        for number in (1, 2):
            delta(batch([2 * consumer + number]), info(number, f"c{consumer}"), path=place, **JSON)

    with ThreadPoolExecutor(3) as threads:
        for each in [threads.submit(consume, consumer) for consumer in (0, 0, 1)]:
            each.result()
    assert ids(spark, place) == [0, 1, 2, 3, 4]
