"""The sink `iceberg`, with Iceberg's own library and a catalog on disk, counted by pyiceberg where it is installed, else by Iceberg's metadata."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import page_blocks
import pytest
import yaml
from conftest_sinks import BY_LOOKUP, Batch, has_class, info
from pyspark.sql import SparkSession
from sink_pipelines import JSON

from sluice_checkpoints.errors import Refused
from sluice_consumer.columns import DDL
from sluice_consumer.sinks import iceberg
from sluice_consumer.sinks.iceberg.catalog import CATALOG_CLASS, create
from sluice_consumer.sinks.iceberg.lineage import Mark
from sluice_consumer.sinks.iceberg.once import MarkMoved, add_once
from sluice_consumer.sinks.iceberg.table import IcebergTable
from sluice_consumer.sinks.options import RowOptions
from sluice_consumer.spark.entrypoint import load

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    if not has_class(spark, "org.apache.iceberg.spark.SparkCatalog"):
        pytest.skip("not run: this Spark has no Iceberg")
    spark.conf.set("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.lake.type", "hadoop")
    spark.conf.set("spark.sql.catalog.lake.warehouse", f"file://{tmp_path_factory.mktemp('warehouse')}")
    return "lake"


@pytest.fixture
def table(spark: SparkSession, catalog: str) -> Iterator[str]:
    name = f"{catalog}.db.t{uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, name STRING) USING iceberg")
    yield name
    spark.sql(f"DROP TABLE {name}")


def another_writer(spark: SparkSession, table: str) -> None:
    spark.sql("SELECT 100L AS id, 'another writer' AS name").writeTo(table).append()


def ids(spark: SparkSession, table: str) -> list[int]:
    spark.catalog.refreshTable(table)
    return sorted(row.id for row in spark.table(table).collect())


def count(spark: SparkSession, table: str) -> int:
    return spark.table(table).count()


def test_a_batch_that_is_held_is_not_transformed_again(spark: SparkSession, table: str, batch: Batch, lookup_down: Callable[[], None]) -> None:
    """What raises then would pass for poison, and a batch that is held would be shortened."""
    args: dict[str, Any] = {"table": table, "transform": BY_LOOKUP, "decode": "json", "schema": "id BIGINT"}
    iceberg(batch(range(4)), info(1), **args)
    lookup_down()
    iceberg(batch(range(4)), info(1), **args)
    assert ids(spark, table) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="nonsense"):
        iceberg(batch([4]), info(2), **args)


def test_each_record_is_there_once_though_batches_come_again(spark: SparkSession, table: str, batch: Batch) -> None:
    for number, numbers in ((1, range(10)), (1, range(10)), (2, range(10, 15)), (2, range(10, 15)), (4, range(15, 16))):
        iceberg(batch(numbers), info(number), table=table, **JSON)
    assert ids(spark, table) == list(range(16))
    summaries = [row.summary.get("sluice.batch") for row in spark.table(f"{table}.snapshots").collect()]
    assert {"1", "2", "4"} <= set(summaries)


def test_expired_snapshots_do_not_make_a_batch_new(spark: SparkSession, table: str, batch: Batch) -> None:
    """The mark is a tag, and a tag's snapshot stays, though the table says that tags grow old."""
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('history.expire.max-ref-age-ms'='1', 'history.expire.max-snapshot-age-ms'='1')")
    iceberg(batch(range(10)), info(1), table=table, **JSON)
    another_writer(spark, table)
    java: Any = IcebergTable.load(spark, table)._table
    java.expireSnapshots().expireOlderThan(2**62).retainLast(1).commit()
    iceberg(batch(range(10)), info(1), table=table, **JSON)
    assert ids(spark, table) == [*range(10), 100]


def test_a_driver_that_stood_still_adds_nothing_after_its_heir(spark: SparkSession, table: str, batch: Batch) -> None:
    """It had looked and staged; its heir did this batch and the next ones meanwhile, and their snapshots have expired."""
    iceberg(batch(range(3)), info(1), table=table, **JSON)
    late = IcebergTable.load(spark, table)
    late.frame = batch(range(3, 6)).selectExpr("CAST(sequenceNumber AS BIGINT) AS id", "partitionKey AS name")
    publish: Callable[[int], None] = late.stage("c", 2)
    for number, numbers in ((2, range(3, 6)), (3, range(6, 9))):
        iceberg(batch(numbers), info(number), table=table, **JSON)
    with pytest.raises(MarkMoved):
        publish(1)
    assert ids(spark, table) == list(range(9))


def test_another_writer_between_staging_and_publication_is_kept(spark: SparkSession, table: str, batch: Batch) -> None:
    class Interrupted(IcebergTable):
        def stage(self, consumer: str, batch: int) -> Callable[[int], None]:
            publish = super().stage(consumer, batch)
            another_writer(spark, table)
            return publish

    iceberg(batch([1]), info(1), table=table, **JSON)
    found = IcebergTable.load(spark, table)
    slow = Interrupted(spark, table, found._table)
    slow.frame = batch([2]).selectExpr("CAST(sequenceNumber AS BIGINT) AS id", "partitionKey AS name")
    assert add_once(slow, "c", 2)
    assert ids(spark, table) == [1, 2, 100]


def test_two_consumers_write_to_one_table(spark: SparkSession, table: str, batch: Batch) -> None:
    for consumer, numbers in (("a", [1]), ("b", [2]), ("a", [1]), ("b", [2])):
        iceberg(batch(numbers), info(1, consumer), table=table, **JSON)
    assert ids(spark, table) == [1, 2]


def test_a_batch_without_records_moves_the_mark(spark: SparkSession, table: str, batch: Batch) -> None:
    iceberg(batch([]), info(1), table=table, **JSON)
    assert IcebergTable.load(spark, table).read_mark("c") == Mark(1, tagged=True)


def test_a_table_is_made_if_there_is_none_when_that_is_asked_for(spark: SparkSession, catalog: str, batch: Batch) -> None:
    name = f"{catalog}.db.t{uuid4().hex}"
    for number in (1, 2):
        iceberg(batch([number]), info(number), table=name, create=True, partition="day", **JSON)
    assert ids(spark, name) == [1, 2]
    assert [row.arrival_day for row in spark.table(f"{name}.partitions").selectExpr("partition.arrival_day").collect()] == ["2026-11-24"]
    properties = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    assert properties["format-version"] == "2"


def test_two_drivers_make_a_table_at_once(spark: SparkSession, catalog: str, batch: Batch) -> None:
    name = f"{catalog}.db.t{uuid4().hex}"
    made, barrier = batch([1]).select("data"), threading.Barrier(2)

    def make() -> None:
        barrier.wait()
        create(made, name, RowOptions())

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(make) for _ in range(2)]:
            each.result()
    assert count(spark, name) == 0


def test_a_table_that_is_not_there_is_refused_with_what_makes_one(spark: SparkSession, catalog: str, batch: Batch) -> None:
    name = f"{catalog}.db.t{uuid4().hex}"
    with pytest.raises(
        Refused, match=rf"pipeline\.args\.table: {name}: there is no such table; set pipeline.args.create: true, or create it: CREATE"
    ) as told:
        iceberg.prepare(spark, {"table": name, "partition": "hour", **JSON})
    spark.sql(str(told.value).partition("create it: ")[2])
    iceberg(batch([1]), info(1), table=name, partition="hour", **JSON)
    assert ids(spark, name) == [1]


def test_rows_that_do_not_fit_are_refused_and_nothing_is_added(spark: SparkSession, table: str, batch: Batch) -> None:
    with pytest.raises(Refused, match=r"too many data columns.*the rows do not fit the table; change pipeline\.args\.schema"):
        iceberg(batch([1]), info(1), table=table)
    assert ids(spark, table) == []


def test_a_spark_without_iceberg_is_refused_before_the_first_batch(spark: SparkSession) -> None:
    if has_class(spark, CATALOG_CLASS):
        pytest.skip("not run: this Spark has Iceberg")
    with pytest.raises(Refused, match=r"pipeline\.args\.table: lake\.db\.t: this Spark has no Iceberg; use an image with it \(docs/images\.md\)"):
        iceberg.prepare(spark, {"table": "lake.db.t"})


def test_the_process_of_the_page_leaves_out_what_it_says(spark: SparkSession, catalog: str, batch: Batch) -> None:
    """docs/sinks.md: a `process` that calls the sink; once, though its batch comes again."""
    assert catalog == "lake"
    spark.sql(f"CREATE TABLE lake.db.orders ({DDL}) USING iceberg")
    names: dict[str, Any] = {}
    exec(page_blocks.beginning("docs/sinks.md", "from sluice_consumer.sinks import iceberg"), names)  # noqa: S102 - the page's own code
    rows = batch(range(4)).replace({"k3": "test"}, subset=["partitionKey"])
    for _ in range(2):
        names["process"](rows, info(1))
    assert sorted(row.partitionKey for row in spark.table("lake.db.orders").collect()) == ["k0", "k1", "k2"]


def test_the_pipeline_without_code_of_the_page_writes_its_columns(spark: SparkSession, catalog: str, batch: Batch) -> None:
    """docs/sinks.md: entrypoint and `args` of its manifest."""
    assert catalog == "lake"
    spark.sql("DROP TABLE IF EXISTS lake.db.orders")
    spark.sql("CREATE TABLE lake.db.orders (id BIGINT, name STRING) USING iceberg")
    pipeline = yaml.safe_load(page_blocks.beginning("docs/sinks.md", "pipeline:"))["pipeline"]
    process = load(pipeline["entrypoint"])
    process(batch(range(4)), info(1, **pipeline["args"]))
    assert ids(spark, pipeline["args"]["table"]) == [0, 1, 2, 3]
