"""Batches for the sinks, and where they are written: a disk, a real S3 server, a catalog of Iceberg."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from sluice_consumer.columns import DDL
from sluice_consumer.pipelines import BatchInfo
from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.aws.emulators import S3_ACCESS_KEY, S3_SECRET_KEY

ARRIVAL = datetime(2026, 11, 24, 10, 30, tzinfo=UTC)
Batch = Callable[[Sequence[int]], DataFrame]


def info(batch: int, consumer: str = "c", **args: Any) -> BatchInfo:
    """Of a batch of two shards."""
    return BatchInfo(consumer, batch, replay=False, stream="orders", shards=("shardId-0", "shardId-1"), args=args)


def document(number: int) -> bytes:
    """What a producer sends."""
    return f'{{"id": {number}, "name": "order {number}"}}'.encode()


@pytest.fixture
def batch(spark: SparkSession) -> Batch:
    """Makes a batch of numbered JSON documents, in two shards."""

    def make(numbers: Sequence[int]) -> DataFrame:
        made = [(f"k{n}", document(n), "orders", f"shardId-{n % 2}", str(n), 0, ARRIVAL) for n in sorted(numbers, key=lambda n: (n % 2, n))]
        return spark.createDataFrame(made, DDL).coalesce(1)

    return make


@pytest.fixture(scope="session")
def bucket(s3_endpoint: str) -> str:
    """An empty bucket."""
    name = f"lake-{uuid4()}"
    keys = {"aws_access_key_id": S3_ACCESS_KEY, "aws_secret_access_key": S3_SECRET_KEY, "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=s3_endpoint, **keys).create_bucket(Bucket=name)
    return name


GUEST = ("guest", "a-secret-of-its-own")


@pytest.fixture(scope="session")
def guest_account(s3_endpoint: str) -> None:
    """An account that has no right on the bucket."""
    emulators.make_s3_account(places.work(), s3_endpoint, *GUEST)


def guest(secret: str = GUEST[1]) -> dict[str, str]:
    """Its keys for S3A, or another secret."""
    return {"access.key": GUEST[0] if secret == GUEST[1] else S3_ACCESS_KEY, "secret.key": secret}


@pytest.fixture(scope="session")
def s3_files(s3_endpoint: str) -> fs.FileSystem:
    """The server for a reader that is not Spark."""
    return fs.S3FileSystem(
        access_key=S3_ACCESS_KEY, secret_key=S3_SECRET_KEY, endpoint_override=s3_endpoint, region="us-east-1", force_virtual_addressing=False
    )


@pytest.fixture
def s3a(spark: SparkSession, s3_endpoint: str, bucket: str) -> Iterator[str]:
    """A path on S3 for Spark."""
    jvm: Any = spark._jvm
    if not has_class(spark, "org.apache.hadoop.fs.s3a.S3AFileSystem"):
        pytest.skip("not run: this Spark has no hadoop-aws")
    configuration = spark._jsc.hadoopConfiguration()
    settings = {
        "endpoint": s3_endpoint,
        "endpoint.region": "us-east-1",
        "access.key": S3_ACCESS_KEY,
        "secret.key": S3_SECRET_KEY,
        "path.style.access": "true",
    }
    for name, value in settings.items():
        configuration.set(f"fs.s3a.{name}", value)
    yield f"s3a://{bucket}/{uuid4()}"
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()


@pytest.fixture
def disk(tmp_path: Path) -> str:
    """A path on this disk for Spark."""
    return f"file://{tmp_path}"


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether Spark's JVM finds a class."""
    loader = spark._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()  # type: ignore[union-attr]
    return loader.getResource(name.replace(".", "/") + ".class") is not None
