"""The warm-up with real Spark: what it plans, and which jobs it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from sluice_consumer.config import StreamConfig
from sluice_consumer.spark import warmup_source
from sluice_consumer.spark.warmup import SparkWarmUps

pytestmark = pytest.mark.spark
OPTIONS = warmup_source.options(StreamConfig("s", "us-east-1"))


def jobs(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().statusStore().jobsList(None).size())


def noted(path: str) -> type[DataSource]:
    """A data source that notes each time it is planned. It is sent by value: workers do not import tests."""

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            with open(path, "a") as file:  # noqa: PTH123 - a worker imports nothing for it
                file.write("planned\n")
            return [InputPartition(0)]

        def read(self, partition: InputPartition) -> object:  # type: ignore[override]
            raise NotImplementedError

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "noted"

        def schema(self) -> str:
            return "key string"

        def reader(self, schema: object) -> DataSourceReader:  # noqa: ARG002 - Spark's interface
            return Reader()

    return Source


def test_a_rehearsal_plans_a_read_and_runs_no_job(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it may come before the lease: the workers that plan have begun by then, and nothing was read."""
    spark.dataSource.register(noted(str(tmp_path / "noted")))
    before = jobs(spark)

    def read(_self: SparkWarmUps, _tasks: int) -> DataFrame:
        return spark.read.format("noted").load()

    monkeypatch.setattr(SparkWarmUps, "_read", read)
    SparkWarmUps(spark, OPTIONS).rehearse()
    assert (tmp_path / "noted").read_text() == "planned\n"
    assert jobs(spark) == before


def test_a_warm_up_runs_its_tasks_and_tells_who_ran_them(spark: SparkSession) -> None:
    before = jobs(spark)
    assert SparkWarmUps(spark, OPTIONS).start(2).result(120) == {"driver"}
    assert jobs(spark) == before + 1
