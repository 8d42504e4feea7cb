"""Every built-in way to deliver a batch, as one shape: how it is called, what a reader sees, and what its owner does to it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.dataset as ds
import pytest
from pyspark.sql import DataFrame, SparkSession

from sluice_consumer import sinks
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import Part, committed_files
from sluice_consumer.sinks.iceberg.catalog import CATALOG_CLASS

JSON: dict[str, Any] = {"decode": "json", "schema": "id BIGINT, name STRING"}


@dataclass(frozen=True)
class Delivery:
    """One way.

    Attributes:
        process: delivers a batch, and raises on a document that is none.
        ids: the numbers of all rows that a reader sees, sorted.
        undo: the owner takes back the newest thing that was delivered, by what the store offers for it.
        maintain: the owner's maintenance: old versions go, files are compacted.
        alter: the owner adds a column, where there are columns.
        refuses: an open batch that the owner took back is refused, not stored again.
    """

    process: Callable[[DataFrame, BatchInfo], None]
    ids: Callable[[], list[int]]
    undo: Callable[[], object]
    maintain: Callable[[], object] = lambda: None
    alter: Callable[[], object] = lambda: None
    refuses: bool = False


def iceberg(spark: SparkSession, folder: Path) -> Delivery:
    catalog = f"c{uuid4().hex}"
    for key, value in {"": CATALOG_CLASS, ".type": "hadoop", ".warehouse": f"file://{folder}"}.items():
        spark.conf.set(f"spark.sql.catalog.{catalog}{key}", value)
    name = f"{catalog}.db.orders"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, name STRING) USING iceberg")
    jvm: Any = spark._jvm
    java = jvm.org.apache.iceberg.spark.Spark3Util

    def table() -> Any:
        found = java.loadIcebergTable(spark._jsparkSession, name)
        found.refresh()
        return found

    def ids() -> list[int]:
        spark.catalog.refreshTable(name)
        return sorted(row.id for row in spark.table(name).collect())

    def undo() -> None:
        found = table()
        found.manageSnapshots().rollbackTo(found.currentSnapshot().parentId()).commit()

    return Delivery(
        process=lambda batch, info: sinks.iceberg(batch, info, table=name, **JSON),
        ids=ids,
        undo=undo,
        maintain=lambda: table().expireSnapshots().expireOlderThan(2**62).retainLast(1).commit(),
        alter=lambda: spark.sql(f"ALTER TABLE {name} ADD COLUMN note STRING"),
        refuses=True,
    )


def delta(spark: SparkSession, folder: Path) -> Delivery:
    if "DeltaCatalog" not in str(spark.conf.get("spark.sql.catalog.spark_catalog", "")):
        pytest.skip("not run: this Spark's session has no Delta")
    path = f"file://{folder}/orders"
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, name STRING) USING delta")

    def undo() -> None:
        newest = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()[0].version
        spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {newest - 1}")

    return Delivery(
        process=lambda batch, info: sinks.delta(batch, info, path=path, **JSON),
        ids=lambda: sorted(row.id for row in spark.read.format("delta").load(path).collect()),
        undo=undo,
        maintain=lambda: spark.sql(f"OPTIMIZE delta.`{path}`").collect(),
        alter=lambda: spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN note STRING"),
        refuses=True,
    )


def parquet(_spark: SparkSession, folder: Path) -> Delivery:
    def ids() -> list[int]:
        names = committed_files(str(folder))
        return sorted(ds.dataset(names).to_table()["id"].to_pylist()) if names else []

    def undo() -> None:
        max((folder / "_sluice").glob("*/*.json"), key=lambda file: file.stat().st_mtime_ns).unlink()

    return Delivery(lambda batch, info: sinks.parquet(batch, info, path=f"file://{folder}", **JSON), ids, undo)


def foreach(_spark: SparkSession, path: Path) -> Delivery:
    file = str(path / "orders.db")
    with database(file) as made:
        made.execute("CREATE TABLE orders (id)")
        made.execute("CREATE TABLE parts (consumer, shard, position, PRIMARY KEY (consumer, shard))")

    def undo() -> None:
        (path / "backup.db").replace(file)

    def process(batch: DataFrame, info: BatchInfo) -> None:
        (path / "backup.db").write_bytes(Path(file).read_bytes())
        sinks.foreach(batch, info, lambda rows, part: stored(file, rows, part))

    def ids() -> list[int]:
        with database(file) as found:
            return sorted(number for (number,) in found.execute("SELECT id FROM orders"))

    return Delivery(process, ids, undo)


def database(file: str) -> sqlite3.Connection:
    return sqlite3.connect(file, timeout=60)


def stored(file: str, rows: Any, part: Part) -> None:
    """As docs/sinks.md has it."""
    key = (part.consumer, part.shard)
    with database(file) as transaction:
        transaction.execute("INSERT OR IGNORE INTO parts VALUES (?, ?, '')", key)
        ((stored,),) = transaction.execute("SELECT position FROM parts WHERE consumer = ? AND shard = ?", key)
        transaction.executemany("INSERT INTO orders VALUES (?)", ((json.loads(row["data"])["id"],) for row in part.after(rows, stored)))
        transaction.execute("UPDATE parts SET position = ? WHERE consumer = ? AND shard = ?", (part.position, *key))


WAYS: dict[str, Callable[[SparkSession, Path], Delivery]] = {
    "iceberg": iceberg,
    "delta": delta,
    "parquet": parquet,
    "foreach": foreach,
}
