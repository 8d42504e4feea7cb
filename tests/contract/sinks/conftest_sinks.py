"""Batches for the sinks, and where they are written: a disk, a real S3 server, a catalog of Iceberg."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from sluice_consumer.columns import DDL
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks.edge import has_class
from sluice_lab.aws import emulators
from sluice_lab.aws.emulators import S3_ACCESS_KEY
from sluice_lab.lake.storage import Storage

ARRIVAL = datetime(2026, 11, 24, 10, 30, tzinfo=UTC)
Batch = Callable[[Sequence[int]], DataFrame]


LOOKUP = {"down": False}
BY_LOOKUP = "conftest_sinks:looked_up"


def looked_up(made: DataFrame) -> DataFrame:
    """A transform that asks somebody at once, and raises while nobody answers."""
    if LOOKUP["down"]:
        raise ValueError("the lookup table answers nonsense")
    return made.select("id")


@pytest.fixture
def lookup_down() -> Iterator[Callable[[], None]]:
    yield lambda: LOOKUP.update(down=True)
    LOOKUP["down"] = False


def info(batch: int, consumer: str = "c", **args: Any) -> BatchInfo:
    return BatchInfo(consumer, batch, replay=False, stream="orders", shards=("shardId-0", "shardId-1"), args=args)


def document(number: int) -> bytes:
    return f'{{"id": {number}, "name": "order {number}"}}'.encode()


@pytest.fixture
def batch(spark: SparkSession) -> Batch:
    def make(numbers: Sequence[int]) -> DataFrame:
        made = [(f"k{n}", document(n), "orders", f"shardId-{n % 2}", str(n), 0, ARRIVAL) for n in sorted(numbers, key=lambda n: (n % 2, n))]
        return spark.createDataFrame(made, DDL).coalesce(1)

    return make


@pytest.fixture(scope="session")
def hadoop_aws(spark: SparkSession) -> None:
    """Spark with S3A. It is asked for first: a store for a Spark without it would be started for nothing."""
    if not has_class(spark, "org.apache.hadoop.fs.s3a.S3AFileSystem"):
        pytest.skip("not run: this Spark has no hadoop-aws")


@pytest.fixture(scope="session")
def bucket(hadoop_aws: None, s3_endpoint: str) -> str:  # noqa: ARG001 - asked first
    return Storage(s3_endpoint, f"lake-{uuid4()}").create().bucket


GUEST = ("guest", "a-secret-of-its-own")


@pytest.fixture(scope="session")
def guest_account(hadoop_aws: None, s3_endpoint: str) -> None:  # noqa: ARG001 - asked first
    emulators.make_s3_account(s3_endpoint, *GUEST)


def guest(secret: str = GUEST[1]) -> dict[str, str]:
    return {"access.key": GUEST[0] if secret == GUEST[1] else S3_ACCESS_KEY, "secret.key": secret}


@pytest.fixture(scope="session")
def s3_files(s3_endpoint: str, bucket: str) -> fs.FileSystem:
    return Storage(s3_endpoint, bucket).files()


@pytest.fixture
def s3a(spark: SparkSession, bucket: str, s3_endpoint: str) -> Iterator[str]:
    jvm: Any = spark._jvm
    configuration = spark._jsc.hadoopConfiguration()
    for name, value in Storage(s3_endpoint, bucket).hadoop().items():
        configuration.set(name.removeprefix("spark.hadoop."), value)
    yield f"s3a://{bucket}/{uuid4()}"
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()


@pytest.fixture
def disk(tmp_path: Path) -> str:
    return f"file://{tmp_path}"
