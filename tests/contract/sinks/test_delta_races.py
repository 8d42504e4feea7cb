"""The log of a Delta table on S3, when a commit stands still on its way: our log store, and Delta's own. Counted by deltalake."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from conftest_sinks import Batch, has_class, info
from pyspark.sql import SparkSession

from sluice_consumer.sinks import delta
from sluice_lab.aws import refusals
from sluice_lab.aws.proxy import Proxy, Upstream, proxy
from sluice_lab.lake import readers
from sluice_lab.lake.storage import Storage

JSON = {"decode": "json", "schema": "id BIGINT, name STRING"}
OURS = "dev.sluice.delta.ConditionalS3LogStore"
WAIT = 60.0  # seconds; much longer than a commit takes
pytestmark = pytest.mark.spark


@dataclass
class Gate:
    """Holds the first write of one version of a table's log."""

    version: int
    held: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def __call__(self, method: str, path: str) -> None:
        """See `Proxy.before`."""
        if method == "PUT" and path.endswith(f"_delta_log/{self.version:020d}.json") and not self.held.is_set():
            self.held.set()
            self.opened.wait(WAIT)


@dataclass(frozen=True)
class Bucket:
    """A bucket of this module's own, behind a proxy."""

    storage: Storage
    proxy: Proxy

    def ids(self, path: str) -> list[int]:
        """What a reader sees that is not Spark."""
        return sorted(readers.delta(self.storage, path, ["id"])["id"].to_pylist())


@pytest.fixture(scope="module")
def bucket(spark: SparkSession, s3_endpoint: str) -> Iterator[Bucket]:
    """As `s3a://`, and as `s3://` too, for which Delta takes its own log store."""
    if not has_class(spark, OURS):
        pytest.skip("not run: this Spark's session has no Delta")
    storage = Storage(s3_endpoint, f"races-{uuid4()}").create()
    with proxy(Upstream(s3_endpoint, refusals.s3), "127.0.0.1") as found:
        hadoop = spark._jsc.hadoopConfiguration()  # type: ignore[union-attr]
        hadoop.set("fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
        for name, value in storage.at(found.endpoint).hadoop().items():
            hadoop.set(name.removeprefix("spark.hadoop.").replace("fs.s3a.", f"fs.s3a.bucket.{storage.bucket}."), value)
        yield Bucket(storage, found)


def race(bucket: Bucket, batch: Batch, spark: SparkSession, scheme: str) -> list[int]:
    """A driver stands still while it commits batch 2. Another writer appends the row 100, and the driver's heir does batches 2 and 3."""
    name = f"t{uuid4().hex}"
    path = f"{scheme}://{bucket.storage.bucket}/{name}"
    delta(batch(range(5)), info(1), path=path, create=True, **JSON)
    bucket.proxy.before = gate = Gate(2)  # 0 makes the table, 1 is batch 1
    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(delta, batch(range(5, 10)), info(2), path=path, create=True, **JSON)
        assert gate.held.wait(WAIT)
        spark.sql("SELECT 100L AS id, 'another writer' AS name").write.format("delta").mode("append").save(path)
        for number, numbers in ((2, range(5, 10)), (3, range(10, 15))):
            delta(batch(numbers), info(number), path=path, create=True, **JSON)
        gate.opened.set()
        late.exception(WAIT)
    return bucket.ids(name)


def test_a_commit_that_stood_still_replaces_nothing(bucket: Bucket, batch: Batch, spark: SparkSession) -> None:
    """S3 refuses it; Delta looks at what is there now, and finds that its batch is."""
    assert race(bucket, batch, spark, "s3a") == [*range(15), 100]


def test_deltas_own_log_store_would_lose_rows(bucket: Bucket, batch: Batch, spark: SparkSession) -> None:
    """What our log store is for: the late commit replaces that of the other writer, and adds its batch again."""
    assert race(bucket, batch, spark, "s3") == sorted([*range(5), *range(5, 10), *range(5, 10), *range(10, 15)])
