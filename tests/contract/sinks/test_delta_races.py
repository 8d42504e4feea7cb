"""The log of a Delta table on S3, when a commit stands still on its way: our log store, and Delta's own. Counted by deltalake."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
import pytest
from conftest_sinks import Batch, has_class, info
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from sink_pipelines import JSON

from sluice_consumer.sinks import delta
from sluice_lab.aws import refusals
from sluice_lab.aws.proxy import Proxy, Upstream, proxy
from sluice_lab.lake import readers
from sluice_lab.lake.storage import Storage

OURS = "dev.sluice.delta.ConditionalS3LogStore"
WAIT = 60.0  # seconds; much longer than a commit takes
pytestmark = [pytest.mark.spark, pytest.mark.lake]


@dataclass
class Gate:
    version: int
    held: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def __call__(self, method: str, path: str) -> None:
        if method == "PUT" and path.endswith(f"_delta_log/{self.version:020d}.json") and not self.held.is_set():
            self.held.set()
            self.opened.wait(WAIT)


@dataclass(frozen=True)
class Bucket:
    storage: Storage
    proxy: Proxy

    def ids(self, path: str) -> list[int]:
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


def race(bucket: Bucket, batch: Batch, scheme: str) -> list[int]:
    """A driver stands still while it commits batch 2, and a writer that is not Spark appends the row 100."""
    name = f"t{uuid4().hex}"
    path = f"{scheme}://{bucket.storage.bucket}/{name}"
    delta(batch(range(5)), info(1), path=path, create=True, **JSON)
    bucket.proxy.before = gate = Gate(2)  # version 0 makes the table, 1 is batch 1
    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(delta, batch(range(5, 10)), info(2), path=path, **JSON)
        assert gate.held.wait(WAIT)
        row = pa.table({"id": pa.array([100], pa.int64()), "name": ["another writer"]})
        write_deltalake(f"s3://{bucket.storage.bucket}/{name}", row, mode="append", storage_options=bucket.storage.delta())
        gate.opened.set()
        assert late.exception(WAIT) is None
    return bucket.ids(name)


def test_a_commit_that_stood_still_replaces_nothing(bucket: Bucket, batch: Batch) -> None:
    """S3 refuses it. Delta looks at what is there now, and takes the next version."""
    assert race(bucket, batch, "s3a") == [*range(10), 100]


def test_deltas_own_log_store_loses_rows(bucket: Bucket, batch: Batch) -> None:
    """What ours is for: the late commit replaces that of the other writer."""
    assert race(bucket, batch, "s3") == list(range(10))
