"""The sink `parquet` on a disk and on S3, counted by pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import page_blocks
import pyarrow.dataset as ds
import pytest
from conftest_sinks import BY_LOOKUP, Batch, info
from pyarrow import fs
from pyspark.sql import SparkSession
from sink_pipelines import JSON

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import committed_files, parquet
from sluice_consumer.sinks.files import manifest, stores
from sluice_consumer.sinks.rows import FILE_SIZE
from sluice_lab.aws.proxy import ProxiedCall, ProxiedReply, Upstream, proxy
from sluice_lab.lake.storage import Storage
from sluice_lab.machine.listening import LOOPBACK

pytestmark = pytest.mark.spark


@pytest.fixture(params=["disk", "s3a"])
def place(request: pytest.FixtureRequest) -> tuple[str, fs.FileSystem, str]:
    root: str = request.getfixturevalue(request.param)
    if request.param == "disk":
        return root, fs.LocalFileSystem(), root.removeprefix("file://")
    return root, request.getfixturevalue("s3_files"), root.removeprefix("s3a://")


def ids(place: tuple[str, fs.FileSystem, str]) -> list[int]:
    _, files, root = place
    found: list[int] = ds.dataset(committed_files(root, filesystem=files), filesystem=files).to_table()["id"].to_pylist()
    return sorted(found)


def test_each_record_is_there_once_though_batches_come_again(place: Any, batch: Batch) -> None:
    for number, numbers in ((1, range(10)), (1, range(10)), (2, range(10, 15)), (2, range(10, 15))):
        parquet(batch(numbers), info(number), path=place[0], **JSON)
    assert ids(place) == list(range(15))


def test_what_a_killed_driver_left_does_not_count_and_goes(place: Any, batch: Batch) -> None:
    left = f"{place[0]}/c/{1:012d}/dead"
    batch(range(7)).selectExpr("CAST(sequenceNumber AS BIGINT) AS id").write.parquet(left)
    parquet(batch(range(10)), info(1), path=place[0], **JSON)
    assert ids(place) == list(range(10))
    found = place[1].get_file_info(fs.FileSelector(f"{place[2]}/c", recursive=True))
    assert [each.path for each in found if "dead" in each.path] == []


def test_a_batch_that_is_held_is_not_transformed_again(place: Any, batch: Batch, lookup_down: Callable[[], None]) -> None:
    """What raises then would pass for poison, and a batch that is held would be shortened."""
    args = {"path": place[0], "transform": BY_LOOKUP, "decode": "json", "schema": "id BIGINT"}
    parquet(batch(range(4)), info(1), **args)
    lookup_down()
    parquet(batch(range(4)), info(1), **args)
    assert ids(place) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="nonsense"):
        parquet(batch([4]), info(2), **args)


def test_a_server_that_ignores_the_condition_is_refused(spark: SparkSession, s3a: str, s3_endpoint: str) -> None:
    """Two attempts of one batch would each replace the other's manifest. It is asked once: whatever is created after that is created once."""

    def ignoring(call: ProxiedCall, forward: Callable[[], ProxiedReply]) -> ProxiedReply:
        reply = forward()
        return (200, [("ETag", '"x"')], b"") if call.method == "PUT" and reply[0] == 412 else reply

    name = f"ignoring-{uuid4()}"
    Storage(s3_endpoint, name).create()
    with proxy(Upstream(s3_endpoint), LOOPBACK) as server:
        server.around = ignoring
        spark._jsc.hadoopConfiguration().set(f"fs.s3a.bucket.{name}.endpoint", server.endpoint)
        with pytest.raises(Refused, match=f"s3a://{name}: this server ignores If-None-Match"):
            stores.hadoop_store(spark, f"s3a://{name}").create(f"s3a://{name}/m.json", b"{}")
    kept = stores.hadoop_store(spark, s3a)
    assert [kept.create(f"{s3a}/m.json", content) for content in (b"1", b"2", b"2")] == [True, False, False]
    assert kept.read(f"{s3a}/m.json") == b"1"


@pytest.mark.slow
def test_files_are_grouped_by_arrival(place: Any, batch: Batch) -> None:
    parquet(batch(range(4)), info(1), path=place[0], partition="hour", **JSON)
    assert all("/arrival_hour=2026-11-24-10/" in name for name in committed_files(place[2], filesystem=place[1]))
    assert ids(place) == list(range(4))


@pytest.mark.slow
def test_batches_of_two_consumers_stay_apart(place: Any, batch: Batch) -> None:
    """Numbers begin at 1 in every table."""
    parquet(batch(range(3)), info(1, "a"), path=place[0], **JSON)
    parquet(batch(range(3, 5)), info(1, "b"), path=place[0], **JSON)
    assert ids(place) == list(range(5))
    assert len(committed_files(place[2], "b", place[1])) == 1


def test_the_condition_of_a_manifest_is_the_file_systems_own(place: Any, batch: Batch) -> None:
    """Two attempts that both looked: the second one's manifest is refused."""
    store = stores.hadoop_store(batch([1]).sparkSession, place[0])
    assert store.create(f"{place[0]}/_sluice/c/1.json", b"first")
    assert not store.create(f"{place[0]}/_sluice/c/1.json", b"second")
    assert store.read(f"{place[0]}/_sluice/c/1.json") == b"first"


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [{}, {"partition": "day", "fileBytes": 1 << 27}])
def test_a_batch_without_records_is_written_too(place: Any, batch: Batch, grouped: dict[str, Any]) -> None:
    """It has a manifest, so that a replay finds it. With groups there is no file to name."""
    parquet(batch([]), info(1), path=place[0], **JSON, **grouped)
    named = manifest.from_json(stores.hadoop_store(batch([]).sparkSession, place[0]).read(f"{place[0]}/_sluice/c/{1:012d}.json"))
    assert named == () if grouped else ids(place) == []


def test_a_document_that_does_not_fit_fails_its_batch_unless_the_schema_has_room_for_it(disk: str, batch: Batch) -> None:
    with pytest.raises(Exception, match="MALFORMED_RECORD"):
        parquet(batch([1]), info(1), path=disk, decode="json", schema="id ARRAY<INT>")
    assert committed_files(disk) == []
    parquet(batch([1]), info(1), path=disk, decode="json", schema="id ARRAY<INT>, _corrupt_record STRING")
    (row,) = ds.dataset(committed_files(disk), filesystem=fs.LocalFileSystem()).to_table().to_pylist()
    assert row == {"id": None, "_corrupt_record": '{"id": 1, "name": "order 1"}'}


@pytest.mark.slow
def test_files_have_the_size_that_was_asked_for(disk: str, batch: Batch) -> None:
    many = batch(range(1000)).repartition(6)
    parquet(many, info(1), path=disk, fileBytes=1 << 27, **JSON)
    parquet(many, info(2), path=disk, **JSON)
    names = [Path(name).parent.parent.name for name in committed_files(disk)]
    assert (names.count(f"{1:012d}"), names.count(f"{2:012d}")) == (1, 6)


@pytest.mark.slow
@pytest.mark.parametrize("own", [None, "777b"])
def test_the_size_of_files_is_no_setting_of_the_users_queries(spark: SparkSession, disk: str, batch: Batch, own: str | None) -> None:
    default = spark.conf.get(FILE_SIZE)
    if own:
        spark.conf.set(FILE_SIZE, own)
    try:
        parquet(batch(range(1000)).repartition(2), info(1), path=disk, fileBytes=2000)
        with pytest.raises(Exception, match="MALFORMED_RECORD"):
            parquet(batch([1]), info(2), path=disk, fileBytes=2000, decode="json", schema="id ARRAY<INT>")
        assert spark.conf.get(FILE_SIZE) == (own or default)
        assert len(committed_files(disk)) > 2
    finally:
        spark.conf.unset(FILE_SIZE)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, r"pipeline\.args\.path: missing"),
        ({"path": "wasb://a/b"}, "does not know wasb://"),
        ({"path": "file:///x", "pth": 1}, r"pipeline\.args\.pth: this sink has no such option"),
        ({"path": "file:///x", "decode": "json", "schema": "id NOTHING"}, r"pipeline\.args\.schema: 'id NOTHING' is not a list of columns"),
        ({"path": "file:///x", "transform": "no.such:f"}, r"pipeline\.args\.transform: no\.such:f"),
    ],
)
def test_what_would_fail_is_refused_before_the_first_batch(spark: Any, args: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        parquet.prepare(spark, args)


def test_the_reader_of_the_page_sees_what_counts(disk: str, batch: Batch) -> None:
    """docs/sinks.md, "Parquet", with a folder in place of the bucket; what a killed driver left is not read."""
    parquet(batch(range(10)), info(1), path=disk, **JSON)
    batch(range(99)).write.parquet(f"{disk}/c/2/left-by-a-killed-driver")
    names: dict[str, Any] = {}
    exec(page_blocks.beginning("docs/sinks.md", "import pyarrow").replace("s3a://lake/orders", disk), names)  # noqa: S102 - the page's own code
    assert sorted(names["orders"].to_table()["id"].to_pylist()) == list(range(10))


def test_the_process_of_the_page_decodes_and_stores(disk: str, batch: Batch) -> None:
    """docs/sinks.md, "JSON documents", with a folder in place of the bucket."""
    names: dict[str, Any] = {}
    exec(page_blocks.beginning("docs/sinks.md", "from sluice_consumer.sinks import json_rows").replace("s3a://lake/orders", disk), names)  # noqa: S102 - the page's own code
    for _ in range(2):
        names["process"](batch(range(10)), info(1))
    found = ds.dataset(committed_files(disk), filesystem=fs.LocalFileSystem()).to_table()
    assert found.column_names == ["id", "name", "shardId"]
    assert sorted(found["id"].to_pylist()) == list(range(10))
