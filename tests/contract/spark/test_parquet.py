"""The built-in parquet pipeline over a real Spark and its file systems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest_spark import Epoch, configuration
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer import pipelines
from sluice_consumer.config import PipelineConfig, StreamConfig
from sluice_consumer.folders import Folders, HadoopFolders, LocalFolders
from sluice_consumer.pipelines import BatchInfo

pytestmark = pytest.mark.spark


def info(path: str | None) -> BatchInfo:
    """Batch 7."""
    return BatchInfo("c0ffee", 7, replay=False, stream="orders", shards=(), args={} if path is None else {"path": path})


def stored(spark: SparkSession, home: Path) -> list[int]:
    """What readers of batch 7 see."""
    return sorted(row.id for row in spark.read.parquet(str(home / "c0ffee" / "000000000007")).collect())


def test_a_batch_that_comes_again_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """The first complete output counts, and the batch is not read again."""
    pipelines.parquet(spark.range(4).toDF("id"), info(tmp_path.as_uri()))
    pipelines.parquet(spark.range(9).toDF("id"), info(str(tmp_path)))
    assert stored(spark, tmp_path) == [0, 1, 2, 3]


def test_an_epoch_that_wakes_before_its_rename_leaves_the_heirs_output_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood still for longer than its lease; meanwhile the next epoch wrote and published the same batch."""
    move = LocalFolders.move

    def late(files: LocalFolders, source: str, target: str) -> None:
        monkeypatch.setattr(LocalFolders, "move", move)
        pipelines.parquet(spark.range(9).toDF("id"), info(tmp_path.as_uri()))
        move(files, source, target)

    monkeypatch.setattr(LocalFolders, "move", late)
    pipelines.parquet(spark.range(4).toDF("id"), info(tmp_path.as_uri()))
    assert stored(spark, tmp_path) == list(range(9))
    assert not list((tmp_path / "c0ffee" / "_staging").iterdir())


def test_an_empty_batch_is_stored_too(spark: SparkSession, tmp_path: Path) -> None:
    """Else the next epoch would take it for one that was not stored."""
    pipelines.parquet(spark.range(0).toDF("id"), info(tmp_path.as_uri()))
    assert stored(spark, tmp_path) == []


@pytest.mark.parametrize(
    "path", ["s3a://lake/orders", "gs://lake/orders", "abfss://a@b.example/orders", "http://a.example/orders", "viewfs://a/orders"]
)
def test_a_file_system_whose_rename_is_not_atomic_is_refused_before_the_first_batch(spark: SparkSession, aws: StreamConfig, path: str) -> None:
    """With the argument's name, and what to do."""
    config = configuration(aws, "sluice_consumer.pipelines:parquet")
    config = replace(config, pipeline=PipelineConfig(config.pipeline.entrypoint, {"path": path}))
    with pytest.raises(Refused, match=rf"pipeline\.args\.path: {path}.*hdfs://"):
        Epoch(spark, config)


def test_a_path_that_is_missing_is_refused_before_the_first_batch(spark: SparkSession, aws: StreamConfig) -> None:
    """Not by the first batch of each epoch."""
    with pytest.raises(Refused, match=r"pipeline\.args\.path: missing"):
        Epoch(spark, configuration(aws, "sluice_consumer.pipelines:parquet"))


@pytest.fixture
def over_hadoop(spark: SparkSession, tmp_path: Path) -> Folders:
    """Hadoop's own way of renaming, on a disk."""
    jvm: Any = spark._jvm
    return HadoopFolders(jvm, spark._jsc.hadoopConfiguration(), jvm.java.net.URI(tmp_path.as_uri()))


def test_hadoop_renames_a_folder_and_replaces_nothing(over_hadoop: Folders, tmp_path: Path) -> None:
    """`FileSystem.rename` would move a folder into one that exists, and return true."""
    one, other, target = (tmp_path.as_uri() + name for name in ("/one", "/other", "/target"))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part-0").write_text(name)
    over_hadoop.move(one, target)
    with pytest.raises(OSError, match="could not be renamed"):
        over_hadoop.move(other, target)
    assert over_hadoop.exists(target)
    assert [path.read_text() for path in (tmp_path / "target").iterdir()] == ["one"]
    over_hadoop.delete(other)
    over_hadoop.delete(other)
    assert not (tmp_path / "other").exists()
