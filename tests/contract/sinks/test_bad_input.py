"""Bad input of the sinks, with real stores and tables: what is refused, in which words, and that nothing is added."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from conftest_sinks import Batch, guest, has_class, info
from pyspark.sql import DataFrame, SparkSession
from sink_pipelines import JSON

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import committed_files, delta, iceberg, parquet
from sluice_consumer.sinks.edge import SinkUnavailable
from sluice_consumer.sinks.iceberg.catalog import CATALOG_CLASS
from sluice_consumer.sinks.options import RowArguments

NOBODY = "http://127.0.0.1:9"  # no server listens there
pytestmark = pytest.mark.spark
Configured = Callable[[dict[str, str]], str]


def number_of(batch: DataFrame) -> int:
    """A transform that returns no rows."""
    return len(batch.columns)


@pytest.fixture
def broken(spark: SparkSession, s3a: str) -> Iterator[Configured]:
    assert s3a
    configuration: Any = spark._jsc.hadoopConfiguration()
    names: list[str] = []

    def make(settings: dict[str, str]) -> str:
        bucket = settings.pop("bucket", f"broken-{uuid4()}")
        for name, value in settings.items():
            names.append(f"fs.s3a.bucket.{bucket}.{name}")
            configuration.set(names[-1], value)
        spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # type: ignore[union-attr]
        return f"s3a://{bucket}/{uuid4()}"

    yield make
    for name in names:
        configuration.unset(name)


@pytest.fixture
def lake(spark: SparkSession, disk: str) -> str:
    if not has_class(spark, CATALOG_CLASS):
        pytest.skip("not run: this Spark has no Iceberg")
    return catalog(spark, disk)


def catalog(spark: SparkSession, warehouse: str, **more: str) -> str:
    name = f"lake{uuid4().hex}"
    for key, value in {"": CATALOG_CLASS, ".type": "hadoop", ".warehouse": warehouse, **more}.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    return name


@pytest.fixture
def with_delta(spark: SparkSession) -> None:
    if "DeltaCatalog" not in str(spark.conf.get("spark.sql.catalog.spark_catalog", "")):
        pytest.skip("not run: this Spark's session has no Delta")


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def looks(request: pytest.FixtureRequest, spark: SparkSession) -> Callable[[str], None]:
    if request.param == "parquet":
        return lambda place: parquet.prepare(spark, {"path": place})
    if request.param == "delta":
        request.getfixturevalue("with_delta")
        return lambda place: delta.prepare(spark, {"path": place, "create": True})
    request.getfixturevalue("lake")
    return lambda place: iceberg.prepare(spark, {"table": f"{catalog(spark, place)}.db.t", "create": True})


def one_screen(message: str) -> bool:
    return len(message) <= 24 * 150


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({}, "the bucket does not exist; create it, or name another one"),
        (
            guest(secret="wrong"),
            "check its keys, and let it read, write, list and delete there|the secret key is wrong; correct the pod's AWS credentials",
        ),
    ],
    ids=["no bucket", "a wrong secret"],
)
def test_a_store_that_refuses_is_told_before_the_first_batch(broken: Configured, looks: Any, settings: dict[str, str], cause: str) -> None:
    with pytest.raises(Refused, match=rf"^pipeline\.args\.(path|table): .*({cause})") as told:
        looks(broken(dict(settings)))
    assert one_screen(str(told.value))


def test_a_bucket_without_rights_is_refused(broken: Configured, looks: Any, bucket: str, guest_account: None) -> None:
    assert guest_account is None
    with pytest.raises(Refused, match="the store or catalog refuses the driver's account; check its keys"):
        looks(broken({"bucket": bucket, **guest()}))


def test_a_store_that_does_not_answer_is_no_wrong_input(broken: Configured, looks: Any) -> None:
    """It may be back soon. Here it is asked once, so that the test does not wait for S3A."""
    place = broken({"endpoint": NOBODY, "attempts.maximum": "1", "retry.limit": "0"})
    with pytest.raises(SinkUnavailable, match=r"^pipeline\.args\.(path|table): .*nothing of the batch counts, and it comes again"):
        looks(place)


def test_an_unknown_catalog_is_refused_with_what_defines_one(spark: SparkSession, lake: str) -> None:
    assert lake
    with pytest.raises(Refused, match=r"^sparkConf: spark\.sql\.catalog\.typo: missing, so that there is no catalog typo for pipeline\.args\.table"):
        iceberg.prepare(spark, {"table": "typo.db.orders"})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"": "org.example.NoCatalog"}, r"org\.example\.NoCatalog.*a class is missing in this Spark"),
        ({".type": "hadop"}, r"hadop.*the catalog cannot be made; correct spark\.sql\.catalog\.\* in sparkConf"),
    ],
)
def test_a_catalog_that_cannot_be_made_is_refused(spark: SparkSession, lake: str, disk: str, settings: dict[str, str], words: str) -> None:
    """Spark by itself takes it for a namespace."""
    assert lake
    with pytest.raises(Refused, match=rf"^pipeline\.args\.table: .*{words}"):
        iceberg.prepare(spark, {"table": f"{catalog(spark, disk, **settings)}.db.orders"})


def test_a_catalog_that_does_not_answer_is_no_wrong_input(spark: SparkSession, lake: str) -> None:
    """Spark by itself says that a namespace has too many parts."""
    assert lake
    name = catalog(spark, "file:///unused", **{".type": "rest", ".uri": f"{NOBODY}/"})
    with pytest.raises(SinkUnavailable, match="Connect"):
        iceberg.prepare(spark, {"table": f"{name}.db.orders"})


def test_a_name_without_a_catalog_is_refused(spark: SparkSession, lake: str) -> None:
    with pytest.raises(Refused, match="has no catalog or no namespace; name it with its catalog"):
        iceberg.prepare(spark, {"table": "orders"})
    with pytest.raises(Refused, match="it is not the name of a table; name it with its catalog"):
        iceberg.prepare(spark, {"table": f"{lake}.db.t t"})


def test_a_table_of_icebergs_that_is_gone_is_refused_in_mid_run(spark: SparkSession, lake: str, batch: Batch) -> None:
    table = f"{lake}.db.orders"
    iceberg(batch([1]), info(1), table=table, create=True, **JSON)
    spark.sql(f"DROP TABLE {table}")
    with pytest.raises(Refused, match=rf"^pipeline\.args\.table: {table}: .*there is no such table"):
        iceberg(batch([2]), info(2), table=table, **JSON)
    assert not spark.catalog.tableExists(table)


@pytest.mark.usefixtures("with_delta")
@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"schema": "id BIGINT, nam STRING"}, "it has no column nam"),
        ({"schema": "id STRING, name STRING"}, "id is string in the rows, and bigint in the table"),
        ({"partition": "day"}, "it has no column arrival_day"),
    ],
)
def test_rows_that_do_not_fit_a_table_of_deltas_are_refused_by_column(disk: str, batch: Batch, args: RowArguments, words: str) -> None:
    delta(batch([1]), info(1), path=disk, create=True, **JSON)
    with pytest.raises(Refused, match=rf"^pipeline\.args\.path: .*the rows do not fit the table: {words}; change pipeline\.args\.schema"):
        delta(batch([2]), info(2), path=disk, **(JSON | args))
    assert batch([1]).sparkSession.read.format("delta").load(disk).count() == 1


@pytest.mark.usefixtures("with_delta")
@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({"path": "gs://lake/orders"}, r'^pipeline\.args\.path: .*No FileSystem for scheme "gs": a class is missing in this Spark'),
        ({"table": "nowhere.orders", "create": True}, r"^pipeline\.args\.table: .*there is no such namespace; create it: CREATE NAMESPACE"),
        ({"path": "file:///x", "tabel": 1}, r"^pipeline\.args\.tabel: this sink has no such option; it knows path, table, create"),
        ({"path": "file:///x", "create": "yes"}, r"^pipeline\.args\.create: 'yes' is neither true nor false"),
    ],
)
def test_what_delta_cannot_have_is_refused(spark: SparkSession, batch: Batch, place: dict[str, Any], words: str) -> None:
    def first_batch() -> None:
        delta.prepare(spark, place)
        delta(batch([1]), info(1), **place)

    with pytest.raises(Refused, match=words):
        first_batch()


def test_a_jar_that_is_missing_is_told(spark: SparkSession) -> None:
    if has_class(spark, "org.apache.hadoop.fs.s3a.S3AFileSystem"):
        pytest.skip("not run: this Spark has hadoop-aws")
    with pytest.raises(
        Refused, match=r"^pipeline\.args\.path: s3a://lake/orders: .*S3AFileSystem not found: a class is missing in this Spark; use an image"
    ):
        parquet.prepare(spark, {"path": "s3a://lake/orders"})


def test_a_transform_that_returns_no_rows_is_refused(disk: str, batch: Batch) -> None:
    with pytest.raises(Refused, match=r"^pipeline\.args\.transform: test_bad_input:number_of returned a int, no DataFrame; let it return the rows"):
        parquet(batch([1]), info(1), path=disk, transform="test_bad_input:number_of")
    assert committed_files(disk) == []
