"""The statements that take batches out of a sink, carried out with the real libraries: then the sink goes on (docs/how-to/undo-a-deploy.md)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest_sinks import Batch, has_class, info
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sink_pipelines import JSON

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import committed_files, delta, iceberg, parquet, rollback_reading
from sluice_consumer.sinks.iceberg.table import IcebergTable

pytestmark = pytest.mark.spark


def ids(spark: SparkSession, table: str) -> list[int]:
    spark.catalog.refreshTable(table)
    return sorted(row.id for row in spark.table(table).collect())


# -- Iceberg -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    if not has_class(spark, "org.apache.iceberg.spark.SparkCatalog"):
        pytest.skip("not run: this Spark has no Iceberg")
    name = f"rolled{uuid4().hex}"
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"spark.sql.catalog.{name}.type", "hadoop")
    spark.conf.set(f"spark.sql.catalog.{name}.warehouse", f"file://{tmp_path_factory.mktemp('warehouse')}")
    return name


@pytest.fixture
def table(spark: SparkSession, catalog: str) -> Iterator[str]:
    """An empty table whose name has to be quoted."""
    name = f"{catalog}.db.`t-{uuid4().hex}`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, name STRING) USING iceberg")
    yield name
    spark.sql(f"DROP TABLE {name}")


def carry_out(spark: SparkSession, table: str, statements: tuple[str, ...]) -> None:
    """The statements, as a session with Iceberg's extensions runs them; by the API where this session has none."""
    for statement in statements:
        try:
            spark.sql(statement)
        except PySparkException as error:
            words = statement.split()
            if words[0] != "ALTER" or "syntax" not in str(error).lower():
                raise
            manage = IcebergTable.load(spark, table).java.manageSnapshots()
            name = words[-1].strip("`")
            (manage.removeTag(name) if "TAG" in words else manage.removeBranch(name)).commit()


def test_batches_are_taken_out_of_an_iceberg_table_and_the_next_ones_are_added(spark: SparkSession, table: str, batch: Batch) -> None:
    """Batch 3 was the first bad one. What others added since goes too, and is named; a tag of the owner keeps the rows, and is named."""
    for number in (1, 2, 3, 4):
        iceberg(batch([number]), info(number), table=table, **JSON)
        if number == 3:
            iceberg(batch([30]), info(7, "other"), table=table, **JSON)
    spark.sql("SELECT 100L AS id, '' AS name").writeTo(table).append()
    java = IcebergTable.load(spark, table).java
    java.manageSnapshots().createTag("audit", java.currentSnapshot().snapshotId()).commit()
    found = rollback_reading.read(spark, "iceberg", table, "c", 3)
    assert found.statements[0].startswith("CALL ")
    assert sorted(each.split(": ")[-1].partition(" (")[0][:5] for each in found.others) == ["batch", "snaps"]
    assert [each for each in found.stays if each.startswith("tag audit holds snapshot")]
    carry_out(spark, table, found.statements)
    assert ids(spark, table) == [1, 2]
    for number in (5, 6):
        iceberg(batch([number]), info(number), table=table, **JSON)
    assert ids(spark, table) == [1, 2, 5, 6]
    assert rollback_reading.read(spark, "iceberg", table, "c", 7).statements == ()


def test_a_redrive_that_goes_with_an_iceberg_table_loses_its_marks_and_the_next_one_is_taken(spark: SparkSession, table: str, batch: Batch) -> None:
    iceberg(batch([1]), info(1), table=table, **JSON)
    iceberg(batch([2]), info(2), table=table, **JSON)
    iceberg(batch([30]), info(1, "c-redrive"), table=table, **JSON)
    found = rollback_reading.read(spark, "iceberg", table, "c", 2)
    assert [each.partition(": ")[2] for each in found.others] == ["batch 1 of consumer c-redrive"]
    carry_out(spark, table, found.statements)
    iceberg(batch([31]), info(2, "c-redrive"), table=table, **JSON)
    assert ids(spark, table) == [1, 31]
    with pytest.raises(Refused, match="holds no batch of consumer d at all"):
        rollback_reading.read(spark, "iceberg", table, "d", 2)


def test_a_snapshot_that_has_expired_is_refused_by_its_number(spark: SparkSession, table: str, batch: Batch) -> None:
    for number in (1, 2, 3):
        iceberg(batch([number]), info(number), table=table, **JSON)
    IcebergTable.load(spark, table).java.expireSnapshots().expireOlderThan(2**62).retainLast(1).commit()
    with pytest.raises(Refused, match=r"has expired; delete the rows by one of their columns"):
        rollback_reading.read(spark, "iceberg", table, "c", 3)
    with pytest.raises(Refused, match=r"do not show batch 2 of consumer strange"):
        rollback_reading.read(spark, "iceberg", table, "strange", 2)
    with pytest.raises(Refused, match=r"there is no such table"):
        rollback_reading.read(spark, "iceberg", table.replace("t-", "none-"), "c", 3)


# -- Delta -------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(spark: SparkSession, disk: str) -> str:
    if "DeltaCatalog" not in str(spark.conf.get("spark.sql.catalog.spark_catalog", "")):
        pytest.skip("not run: this Spark's session has no Delta")
    return f"{disk}/the orders"


def read_delta(spark: SparkSession, path: str) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(path).collect())


def test_batches_are_taken_out_of_a_delta_table_and_the_next_ones_are_added(spark: SparkSession, path: str, batch: Batch) -> None:
    """Twice: what a RESTORE took out is not there to be taken out again."""
    for number in (1, 2, 3, 4):
        delta(batch([number]), info(number), path=path, create=True, **JSON)
    delta(batch([30]), info(7, "other"), path=path, **JSON)
    found = rollback_reading.read(spark, "delta", path, "c", 3)
    assert found.others == ("version 5: batch 7 of consumer other",)
    (statement,) = found.statements
    spark.sql(statement)
    assert read_delta(spark, path) == [1, 2]
    for number in (5, 6):
        delta(batch([number]), info(number), path=path, **JSON)
    assert read_delta(spark, path) == [1, 2, 5, 6]
    (again,) = rollback_reading.read(spark, "delta", path, "c", 3).statements
    spark.sql(again)
    assert read_delta(spark, path) == [1, 2]
    assert rollback_reading.read(spark, "delta", path, "c", 3).statements == ()


def test_batches_from_before_and_after_an_undo_of_the_owner_are_taken_out_of_a_delta_table(spark: SparkSession, path: str, batch: Batch) -> None:
    """After it the consumer's batches have another id in the log (docs/sinks.md, "A table that was moved back or replaced")."""
    for number in (1, 2, 3, 4, 5):
        delta(batch([number]), info(number), path=path, create=True, **JSON)
    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 4")
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('sluice.anew.c'='6')")
    for number in (6, 7):
        delta(batch([number]), info(number), path=path, **JSON)
    assert read_delta(spark, path) == [1, 2, 3, 4, 6, 7]
    found = rollback_reading.read(spark, "delta", path, "c", 3)
    spark.sql(found.statements[0])
    assert read_delta(spark, path) == [1, 2]
    with pytest.raises(Refused, match="holds no batch of consumer d at all"):
        rollback_reading.read(spark, "delta", path, "d", 2)


def test_a_delta_table_that_is_not_there_is_refused(spark: SparkSession, path: str) -> None:
    with pytest.raises(Refused, match=r"--place: .*there is no such Delta table"):
        rollback_reading.read(spark, "delta", path, "c", 3)


# -- Parquet -----------------------------------------------------------------------------------------------------------------------


def test_batches_are_taken_out_of_a_folder_by_commands_that_name_their_files(spark: SparkSession, disk: str, batch: Batch) -> None:
    """Manifests first: from then on the files do not count. Another consumer's stay."""
    root = f"{disk}/the 'orders'"
    for number in (1, 2, 3, 4):
        parquet(batch([number]), info(number), path=root, **JSON)
    parquet(batch([30]), info(3, "other"), path=root, **JSON)
    found = rollback_reading.read(spark, "parquet", root, "c", 3)
    assert [each.split()[1] for each in found.statements] == ["--", "--", "-r", "-r"]
    subprocess.run(["/bin/sh", "-ec", "\n".join(found.statements)], check=True)
    left = committed_files(root.removeprefix("file://"), filesystem=fs.LocalFileSystem())
    assert sorted(each.split("/")[-3] for each in left) == [f"{1:012d}", f"{2:012d}", f"{3:012d}"]
    assert "c/000000000003" not in str(left)
    assert rollback_reading.read(spark, "parquet", root, "c", 3).statements == ()


def test_files_of_a_batch_without_a_manifest_go_too_and_a_redrive_is_named(spark: SparkSession, disk: str, batch: Batch) -> None:
    """Its driver died, and the batch was given up: it never comes again, so nobody else deletes its files."""
    root = f"{disk}/orders"
    for number in (1, 2):
        parquet(batch([number]), info(number), path=root, **JSON)
    parquet(batch([30]), info(1, "c-redrive"), path=root, **JSON)
    Path(root.removeprefix("file://"), "_sluice", "c", f"{2:012d}.json").unlink()
    found = rollback_reading.read(spark, "parquet", root, "c", 2)
    assert [each.split()[1] for each in found.statements] == ["-r"]
    assert [each for each in found.stays if each.startswith("1 redrive of this consumer's dead letters")]


def test_a_place_and_a_consumer_without_any_batch_are_refused(spark: SparkSession, disk: str, batch: Batch) -> None:
    """One may be mistyped: "nothing to take out" would end the repair."""
    parquet(batch([1]), info(1), path=f"{disk}/orders", **JSON)
    for place, consumer in ((f"{disk}/order", "c"), (f"{disk}/orders", "d")):
        with pytest.raises(Refused, match=f"{place} holds no batch of consumer {consumer} at all: check --place and --consumer"):
            rollback_reading.read(spark, "parquet", place, consumer, 1)


def test_commands_for_files_on_s3_are_those_of_its_command_line(spark: SparkSession, s3a: str, batch: Batch) -> None:
    parquet(batch([1]), info(1), path=s3a, **JSON)
    found = rollback_reading.read(spark, "parquet", s3a, "c", 1)
    plain = s3a.replace("s3a://", "s3://")
    assert found.statements == (f"aws s3 rm {plain}/_sluice/c/{1:012d}.json", f"aws s3 rm --recursive {plain}/c/{1:012d}")


def test_a_file_system_without_commands_of_ours_is_refused_by_its_scheme(spark: SparkSession) -> None:
    with pytest.raises(Refused, match=r"--place: ftp://lake/orders: Sluice does not know ftp://"):
        rollback_reading.read(spark, "parquet", "ftp://lake/orders", "c", 1)


def test_it_is_known_which_sink_a_configuration_has() -> None:
    from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig  # noqa: PLC0415 - for this test alone

    def config(entrypoint: str, **args: Any) -> Config:
        return Config(StreamConfig("s", "r"), CheckpointsConfig("ttt"), PipelineConfig(entrypoint, args=args))

    named = config("sluice_consumer.sinks:delta", path="s3a://lake/orders")
    assert rollback_reading.place_of(named, rollback_reading.sink_of(named)) == "s3a://lake/orders"
    with pytest.raises(Refused, match=r"pipeline.entrypoint: orders:process: .*--sink iceberg --place"):
        rollback_reading.sink_of(config("orders:process"))
    with pytest.raises(Refused, match="names no table and no path"):
        rollback_reading.place_of(config("sluice_consumer.sinks:foreach"), "parquet")
