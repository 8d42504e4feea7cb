"""Sluice's own sinks under `sluice_consumer.testing.replays`: with the real libraries, on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import planted
import pyarrow.dataset as ds
import pytest
from conftest_sinks import has_class
from pyspark.sql import DataFrame, SparkSession

from sluice_consumer.sinks import committed_files, delta, iceberg, parquet
from sluice_consumer.testing import ReplayVerdict, TestRecord, batch, info, replays

JSON: dict[str, Any] = {"decode": "json", "schema": "id BIGINT, name STRING"}
pytestmark = [pytest.mark.spark, pytest.mark.lake]


@pytest.fixture
def orders(spark: SparkSession) -> DataFrame:
    return batch(spark, [TestRecord({"id": n, "name": f"order {n}"}, shard=f"shardId-{n % 2}") for n in range(6)])


def killed_at(verdict: ReplayVerdict) -> set[str]:
    return {f"{point.when} {point.what}" for point in verdict.points}


def test_parquet_files(orders: DataFrame, tmp_path: Path) -> None:
    """Between the files and the manifest, and around the manifest's hard link."""

    def held(args: object) -> list[int]:
        found: list[int] = ds.dataset(committed_files(dict(args)["path"])).to_table()["id"].to_pylist()  # type: ignore[call-overload]
        return found

    verdict = replays(parquet, orders, info=info(3, **JSON), sink=lambda n: {"path": f"file://{tmp_path}/{n}"}, held=held)
    verdict.check()
    assert {"after DataFrameWriter.parquet", "before os.link", "after os.link"} <= killed_at(verdict)


def test_delta(spark: SparkSession, orders: DataFrame, tmp_path: Path) -> None:
    """One call writes rows and version."""
    if "DeltaCatalog" not in str(spark.conf.get("spark.sql.catalog.spark_catalog", "")):
        pytest.skip("not run: this Spark's session has no Delta")
    verdict = replays(
        delta,
        orders,
        info=info(**JSON),
        sink=lambda n: {"path": f"file://{tmp_path}/{n}", "create": True},
        held=lambda args: [row.id for row in spark.read.format("delta").load(args["path"]).collect()],
    )
    verdict.check()
    assert "after DataFrameWriter.save" in killed_at(verdict)


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    if not has_class(spark, "org.apache.iceberg.spark.SparkCatalog"):
        pytest.skip("not run: this Spark has no Iceberg")
    name = f"c{uuid4().hex}"
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": f"file://{tmp_path}"}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    yield name
    for key in settings:
        spark.conf.unset(f"spark.sql.catalog.{name}{key}")


def test_iceberg(spark: SparkSession, orders: DataFrame, catalog: str) -> None:
    def empty(number: int) -> dict[str, str]:
        spark.sql(f"CREATE TABLE {catalog}.db.t{number} (id BIGINT, name STRING) USING iceberg")
        return {"table": f"{catalog}.db.t{number}"}

    def held(args: object) -> list[int]:
        spark.catalog.refreshTable(table := dict(args)["table"])  # type: ignore[call-overload]
        return [row.id for row in spark.table(table).collect()]

    verdict = replays(iceberg, orders, info=info(**JSON), sink=empty, held=held)
    verdict.check()
    assert {"before BaseTransaction.commitTransaction", "after BaseTransaction.commitTransaction"} <= killed_at(verdict)


def test_a_keyed_function_for_each_shard(orders: DataFrame, tmp_path: Path) -> None:
    verdict = replays(
        planted.upserts,
        orders,
        sink=lambda n: {"path": f"{tmp_path}/{n}"},
        held=lambda args: planted.database(args["path"]).execute("SELECT sequence FROM orders").fetchall(),
    )
    verdict.check()
    assert {f"half-way through function 1 of foreach, call 1 in task {task}" for task in (0, 1)} <= killed_at(verdict)
