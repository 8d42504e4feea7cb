"""The driver is killed between the sink's write and the batch's commit, again and again: readers without Spark count each record once.

`SLUICE_KILLS` says how many kills (2; `make test-deep`: 50). Every kill ends supervisor, driver and JVM; the next process replays the batch, and is
killed in the one after it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from conftest_process import ConsumerProcess, Consuming
from conftest_sinks import has_class
from pyarrow import fs
from pyspark.sql import SparkSession
from sink_pipelines import JSON

from sluice_consumer.sinks import committed_files
from sluice_consumer.sinks.iceberg.catalog import CATALOG_CLASS
from sluice_lab.lake.storage import Storage

KILLS = int(os.environ.get("SLUICE_KILLS", "2"))
PER_SHARD = 5
LEASE = 3  # seconds: a killed driver leaves it to the next one
pytestmark = [pytest.mark.spark, pytest.mark.lake]
Counting = Callable[[], list[int]]


@dataclass(frozen=True)
class Place:
    """Where a sink writes.

    Attributes:
        options: of the sink.
        spark_conf: what leads there.
        ids: the numbers of all rows that a reader sees, sorted.
        steps: whether the sink can be killed within its write.
    """

    options: Mapping[str, Any]
    spark_conf: Mapping[str, str]
    ids: Counting
    steps: bool = True


@pytest.fixture
def iceberg(spark: SparkSession, tmp_path: Path) -> Place:
    pyiceberg = pytest.importorskip("pyiceberg.table", reason="not run: there is no pyiceberg")
    if not has_class(spark, CATALOG_CLASS):
        pytest.skip("not run: this Spark has no Iceberg")
    home = tmp_path / "warehouse" / "db" / "orders" / "metadata"

    def ids() -> list[int]:
        newest = home / f"v{(home / 'version-hint.text').read_text()}.metadata.json"
        rows = pyiceberg.StaticTable.from_metadata(newest.as_uri()).scan().to_arrow()
        return sorted(rows["id"].to_pylist())

    conf = {"": CATALOG_CLASS, ".type": "hadoop", ".warehouse": f"file://{tmp_path}/warehouse"}
    return Place({"table": "lake.db.orders", "create": True, **JSON}, {f"spark.sql.catalog.lake{name}": value for name, value in conf.items()}, ids)


@pytest.fixture
def delta(spark: SparkSession, tmp_path: Path) -> Place:
    """A table on a disk, read by deltalake. The driver sets what Delta needs where the pipeline is the sink; here it is one that calls it."""
    deltalake = pytest.importorskip("deltalake", reason="not run: there is no deltalake")
    if "DeltaCatalog" not in str(spark.conf.get("spark.sql.catalog.spark_catalog", "")):
        pytest.skip("not run: this Spark's session has no Delta")

    def ids() -> list[int]:
        return sorted(deltalake.DeltaTable(tmp_path / "orders").to_pyarrow_table()["id"].to_pylist())

    return Place({"path": f"file://{tmp_path}/orders", "create": True, **JSON}, {"spark.databricks.delta.snapshotPartitions": "1"}, ids, steps=False)


@pytest.fixture
def parquet(s3a: str, s3_endpoint: str, s3_files: fs.FileSystem) -> Place:
    def ids() -> list[int]:
        found: list[int] = (
            ds.dataset(committed_files(s3a.removeprefix("s3a://"), filesystem=s3_files), filesystem=s3_files).to_table()["id"].to_pylist()
        )
        return sorted(found)

    bucket = s3a.removeprefix("s3a://").partition("/")[0]
    return Place({"path": s3a, **JSON}, Storage(s3_endpoint, bucket).hadoop(), ids)


def killing(consuming: Consuming, place: Place, sink: str, kills: int, folder: Path, **args: Any) -> ConsumerProcess:
    told = {"sink": sink, "options": dict(place.options), "kills": kills, "steps": place.steps, "folder": str(folder), **args}
    return consuming(numbers(kills), "sink_pipelines:killed", told, place.spark_conf, lease=LEASE, maxRecordsPerShard=PER_SHARD)


def numbers(kills: int) -> range:
    return range((kills + 1) * PER_SHARD * 2)


def run_through(consumer: ConsumerProcess, kills: int) -> list[dict[str, Any]]:
    """Runs it until it reaches the tip, which takes a process more than there are kills; what was attempted."""
    codes = [consumer.run().code for _ in range(kills + 1)]
    assert codes == [-9] * kills + [0], (consumer.folder / "stderr").read_text()[-3000:]
    return [json.loads(line) for line in (consumer.folder / "attempts").read_text().splitlines()]


def check_replays(attempts: list[dict[str, Any]], kills: int) -> None:
    killed = [attempt["batch"] for attempt in attempts if attempt["kill"]]
    assert killed == list(range(1, kills + 1))
    assert [attempt["batch"] for attempt in attempts if attempt["replay"]] == killed
    assert [attempt["batch"] for attempt in attempts if not attempt["kill"]] == list(range(1, attempts[-1]["batch"] + 1))


@pytest.mark.parametrize(("sink", "args"), [("iceberg", {"expire": True}), ("delta", {}), ("parquet", {})], ids=["iceberg", "delta", "parquet"])
def test_each_record_is_there_once_though_the_driver_is_killed_before_every_commit(
    request: pytest.FixtureRequest, consuming: Consuming, tmp_path: Path, sink: str, args: dict[str, Any]
) -> None:
    """After the sink's write, and within it. Iceberg's snapshots expire before each replay."""
    place: Place = request.getfixturevalue(sink)
    consumer = killing(consuming, place, sink, KILLS, tmp_path, **args)
    attempts = run_through(consumer, KILLS)
    check_replays(attempts, KILLS)
    assert place.ids() == list(numbers(KILLS))
    assert consumer.row().committed == attempts[-1]["batch"] > KILLS


@pytest.mark.parametrize(("sabotage", "sink"), [("blind_iceberg", "iceberg"), ("late_mark", "iceberg"), ("manifest_first", "parquet")])
def test_a_sink_that_does_not_hold_its_key_with_its_rows_is_found(
    request: pytest.FixtureRequest, consuming: Consuming, spark: SparkSession, tmp_path: Path, sabotage: str, sink: str
) -> None:
    place: Place = request.getfixturevalue(sink)
    if sink == "iceberg":
        mine = f"lake_{sabotage}"
        for name, value in place.spark_conf.items():
            spark.conf.set(name.replace(".lake", f".{mine}"), value)
        spark.sql(f"CREATE TABLE {mine}.db.orders (id BIGINT, name STRING) USING iceberg")
    consumer = killing(consuming, place, sabotage, 1, tmp_path)
    check_replays(run_through(consumer, 1), 1)
    try:
        found = place.ids()
    except FileNotFoundError:  # a manifest names what was never written
        found = []
    first = set(numbers(1)[: 2 * PER_SHARD])
    assert sorted(found) != list(numbers(1))
    assert [n for n in found if n in first] == (sorted([*first, *first]) if sink == "iceberg" else [])
