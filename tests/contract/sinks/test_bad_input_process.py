"""`python -m sluice_consumer` with bad input: the last screen, the exit code, and the place in the stream, which does not move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest_process import Consuming, Ended
from conftest_sinks import GUEST, has_class
from pyspark.sql import SparkSession
from sink_pipelines import JSON

from sluice_consumer.sinks.iceberg.catalog import CATALOG_CLASS
from sluice_lab.lake.storage import Storage

LINES, COLUMNS = 24, 150
pytestmark = [pytest.mark.spark, pytest.mark.lake]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Callable[[str], dict[str, str]]:
    if not has_class(spark, CATALOG_CLASS):
        pytest.skip("not run: this Spark has no Iceberg")
    settings = {"": CATALOG_CLASS, ".type": "hadoop", ".warehouse": f"file://{tmp_path}/warehouse"}

    def make(statement: str) -> dict[str, str]:
        mine = f"lake{tmp_path.name.replace('-', '_')}"
        for name, value in settings.items():
            spark.conf.set(f"spark.sql.catalog.{mine}{name}", value)
        if statement:
            spark.sql(statement.format(lake=mine))
        return {f"spark.sql.catalog.lake{name}": value for name, value in settings.items()}

    return make


def on_one_screen(ended: Ended) -> str:
    assert len(ended.said) <= LINES
    assert max(map(len, ended.said)) <= COLUMNS
    words = " ".join(line.strip() for line in ended.said)
    assert words == f"{ended.told['reason']}: {ended.told['message']}"
    return words


def test_a_table_that_is_not_there(consuming: Consuming, lake: Callable[[str], dict[str, str]]) -> None:
    consumer = consuming(range(4), "sluice_consumer.sinks:iceberg", {"table": "lake.db.orders", **JSON}, lake(""))
    ended = consumer.run()
    assert ended.code == 65, ended.said
    assert on_one_screen(ended) == (
        "Refused: pipeline.args.table: lake.db.orders: there is no such table; set pipeline.args.create: true, or create it: "
        "CREATE TABLE IF NOT EXISTS lake.db.orders (id BIGINT, name STRING) USING iceberg TBLPROPERTIES ('format-version'='2')"
    )
    assert consumer.row().committed == 0


def test_a_table_that_is_gone_in_mid_run(consuming: Consuming, lake: Callable[[str], dict[str, str]], tmp_path: Path) -> None:
    settings = lake("CREATE TABLE {lake}.db.orders (id BIGINT, name STRING) USING iceberg")
    consumer = consuming(range(8), "sink_pipelines:gone_after_first", {"table": "lake.db.orders"}, settings, maxRecordsPerShard=2)
    ended = consumer.run()
    assert ended.code == 65, ended.said
    assert "pipeline.args.table: lake.db.orders: " in on_one_screen(ended)
    assert on_one_screen(ended).endswith("there is no such table (any more); create it, or set pipeline.args.create: true")
    assert consumer.row().committed == 1
    assert not list((tmp_path / "warehouse" / "db").glob("orders/metadata/*.json"))


def test_keys_that_have_no_rights(consuming: Consuming, s3a: str, s3_endpoint: str, guest_account: None) -> None:
    assert guest_account is None
    theirs = {"spark.hadoop.fs.s3a.access.key": GUEST[0], "spark.hadoop.fs.s3a.secret.key": GUEST[1]}
    spark_conf = Storage(s3_endpoint, s3a.removeprefix("s3a://").partition("/")[0]).hadoop() | theirs
    consumer = consuming(range(4), "sluice_consumer.sinks:parquet", {"path": s3a, **JSON}, spark_conf)
    ended = consumer.run()
    assert ended.code == 65, ended.said
    words = on_one_screen(ended)
    assert words.startswith(f"Refused: pipeline.args.path: {s3a}: ")
    assert words.endswith("refuses the driver's account; check its keys, and let it read, write, list and delete there")
    assert consumer.row().committed == 0
