"""The sink `iceberg`, with Iceberg's own library, while the table's owner and other writers act on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from conftest_sinks import Batch, has_class, info
from pyspark.sql import SparkSession
from sink_pipelines import JSON

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import iceberg
from sluice_consumer.sinks.conflicts import CommitConflict
from sluice_consumer.sinks.iceberg import lineage
from sluice_consumer.sinks.iceberg.lineage import Mark
from sluice_consumer.sinks.iceberg.table import FASTER, IcebergTable

CONSUMERS = 4
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    if not has_class(spark, "org.apache.iceberg.spark.SparkCatalog"):
        pytest.skip("not run: this Spark has no Iceberg")
    name = f"owned{uuid4().hex}"
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"spark.sql.catalog.{name}.type", "hadoop")
    spark.conf.set(f"spark.sql.catalog.{name}.warehouse", f"file://{tmp_path_factory.mktemp('warehouse')}")
    return name


@pytest.fixture
def table(spark: SparkSession, catalog: str) -> Iterator[str]:
    name = f"{catalog}.db.t{uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, name STRING) USING iceberg")
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.fixture
def three(spark: SparkSession, table: str, batch: Batch) -> Any:
    """Iceberg's own view of a table with three batches of one record each; the third is open."""
    for number in (1, 2, 3):
        iceberg(batch([number]), info(number), table=table, **JSON)
    return java(spark, table)


def java(spark: SparkSession, table: str) -> Any:
    return IcebergTable.load(spark, table)._table


def ids(spark: SparkSession, table: str) -> list[int]:
    spark.catalog.refreshTable(table)
    return sorted(row.id for row in spark.table(table).collect())


def refusal(batch: Batch, table: str, number: int) -> str:
    with pytest.raises(Refused) as told:
        iceberg(batch([number]), info(number), table=table, **JSON)
    return str(told.value)


def roll_back(table: Any) -> None:
    """To before the last batch, as the procedure `rollback_to_snapshot` does it."""
    table.manageSnapshots().rollbackTo(table.currentSnapshot().parentId()).commit()


def drop_refs(table: Any, words: str) -> None:
    """Runs the statements of a refusal that drop refs, by the API: this session has no extensions of SQL."""
    found = re.findall(r"ALTER TABLE \S+ DROP (TAG|BRANCH) IF EXISTS `([^`]+)`", words)
    assert found
    for kind, name in found:
        (table.manageSnapshots().removeTag(name) if kind == "TAG" else table.manageSnapshots().removeBranch(name)).commit()


@pytest.mark.parametrize("again", [3, 4], ids=["the open batch", "the next one"])
def test_a_batch_after_a_rollback_is_refused_and_added_to_the_table_as_it_is(
    spark: SparkSession, table: str, three: Any, batch: Batch, again: int
) -> None:
    roll_back(three)
    words = refusal(batch, table, again)
    assert f"pipeline.args.table: {table}: batch 3 of consumer c was added in snapshot" in words
    drop_refs(three, words)
    for _ in range(2):
        iceberg(batch([again]), info(again), table=table, **JSON)
    assert ids(spark, table) == [1, 2, again]


def test_a_batch_after_a_rollback_is_found_when_the_owner_brings_it_back(spark: SparkSession, table: str, three: Any, batch: Batch) -> None:
    roll_back(three)
    told = re.search(r"CALL (\w+)\.system\.set_current_snapshot\('(db\.\w+)', (\d+)\)", refusal(batch, table, 3))
    assert told is not None
    assert f"{told[1]}.{told[2]}" == table
    three.manageSnapshots().setCurrentSnapshot(int(told[3])).commit()  # what the procedure does
    for number in (3, 4):
        iceberg(batch([number]), info(number), table=table, **JSON)
    assert ids(spark, table) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "statement",
    ["CREATE OR REPLACE TABLE {} (id BIGINT, name STRING) USING iceberg", "REPLACE TABLE {} USING iceberg AS SELECT 9L AS id, '' AS name"],
)
def test_a_table_that_was_replaced_is_refused(spark: SparkSession, table: str, three: Any, batch: Batch, statement: str) -> None:
    """It has its tags still, and none of the rows."""
    spark.sql(statement.format(table))
    words = refusal(batch, table, 3)
    three.refresh()
    drop_refs(three, words)
    iceberg(batch([3]), info(3), table=table, **JSON)
    assert ids(spark, table) == ([3] if "CREATE" in statement else [3, 9])


def test_a_tag_that_maintenance_dropped_is_set_again(spark: SparkSession, table: str, three: Any, batch: Batch) -> None:
    three.manageSnapshots().removeTag("sluice-c-3").commit()
    iceberg(batch([3]), info(3), table=table, **JSON)
    assert IcebergTable.load(spark, table).read_mark("c") == Mark(3, tagged=True)
    three.refresh()
    three.manageSnapshots().removeTag("sluice-c-3").removeBranch("sluice-c").commit()
    for number in (3, 4):
        iceberg(batch([number]), info(number), table=table, **JSON)
    assert ids(spark, table) == [1, 2, 3, 4]


def test_a_rollback_and_a_dropped_tag_are_refused(table: str, three: Any, batch: Batch) -> None:
    roll_back(three)
    three.manageSnapshots().removeTag("sluice-c-3").commit()
    assert "the table no longer holds it" in refusal(batch, table, 3)


def test_a_table_that_another_consumer_used_is_begun_anew(spark: SparkSession, table: str, three: Any, batch: Batch) -> None:
    """As after `adopt`: the same numbers are other batches."""
    assert three is not None
    for _ in range(2):
        iceberg(batch([10]), info(3, "adopted"), table=table, **JSON)
    assert ids(spark, table) == [1, 2, 3, 10]


def test_a_publication_that_another_writer_preceded_is_tried_again(
    spark: SparkSession, table: str, three: Any, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg refuses the transaction that has looked at the mark already; the rows are written once."""
    assert three is not None
    found = IcebergTable.load(spark, table)
    mark, raced = lineage.mark, list[int]()

    def slow(*args: Any) -> Mark | None:
        seen = mark(*args)
        if not raced:
            raced.append(1)
            spark.sql("SELECT 100L AS id, '' AS name").writeTo(table).append()
        return seen

    monkeypatch.setattr(lineage, "mark", slow)
    found.frame = batch([4]).selectExpr("CAST(sequenceNumber AS BIGINT) AS id", "partitionKey AS name")
    publish = found.stage("c", 4)
    with pytest.raises(CommitConflict, match="CommitFailedException"):
        publish(3)
    publish(3)
    assert ids(spark, table) == [1, 2, 3, 4, 100]


def test_consumers_in_one_table_do_not_end_each_other(spark: SparkSession, table: str, batch: Batch) -> None:
    all_at_once(spark, table, batch, 4)


@pytest.mark.lake
def test_consumers_in_one_table_do_not_end_each_other_for_long(spark: SparkSession, table: str, batch: Batch) -> None:
    all_at_once(spark, table, batch, 100)


def all_at_once(spark: SparkSession, table: str, batch: Batch, batches: int) -> None:
    def consume(consumer: int) -> None:
        for number in range(1, batches + 1):
            iceberg(batch([consumer * batches + number]), info(number, f"c{consumer}"), table=table, **JSON)

    with ThreadPoolExecutor(CONSUMERS) as threads:
        for each in [threads.submit(consume, consumer) for consumer in range(CONSUMERS)]:
            each.result()
    assert ids(spark, table) == list(range(1, CONSUMERS * batches + 1))


def test_the_words_of_a_conflict_are_icebergs(spark: SparkSession) -> None:
    for name in FASTER:
        assert has_class(spark, f"org.apache.iceberg.exceptions.{name}") or not has_class(spark, "org.apache.iceberg.Table")
