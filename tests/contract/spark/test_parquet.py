"""The sink `parquet` over a real Spark: what is refused before the first batch, and how a manifest is made where a store has no conditional write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from conftest_spark import Epoch, configuration
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.config import PipelineConfig, StreamConfig
from sluice_consumer.sinks.files.stores import RenamingStore

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("path", ["gs://lake/orders", "abfss://a@b.example/orders", "http://a.example/orders", "viewfs://a/orders"])
def test_a_file_system_without_a_conditional_write_is_refused_before_the_first_batch(spark: SparkSession, aws: StreamConfig, path: str) -> None:
    config = configuration(aws, "sluice_consumer.sinks:parquet")
    config = replace(config, pipeline=PipelineConfig(config.pipeline.entrypoint, {"path": path}))
    with pytest.raises(Refused, match=rf"pipeline\.args\.path: {path}.*hdfs://"):
        Epoch(spark, config)


def test_a_path_that_is_missing_is_refused_before_the_first_batch(spark: SparkSession, aws: StreamConfig) -> None:
    with pytest.raises(Refused, match=r"pipeline\.args\.path: missing"):
        Epoch(spark, configuration(aws, "sluice_consumer.sinks:parquet"))


def test_hadoop_renames_a_file_and_replaces_nothing(spark: SparkSession, tmp_path: Path) -> None:
    store, manifest = RenamingStore(spark, tmp_path.as_uri()), f"{tmp_path.as_uri()}/_sluice/c/1.json"
    assert [store.create(manifest, content) for content in (b"one", b"other")] == [True, False]
    assert (store.read(manifest), [path for path, _ in store.files(tmp_path.as_uri())]) == (b"one", ["_sluice/c/1.json"])


def test_a_rename_that_fails_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "_sluice").write_text("")
    with pytest.raises((OSError, Py4JJavaError)):
        RenamingStore(spark, tmp_path.as_uri()).create(f"{tmp_path.as_uri()}/_sluice/1.json", b"one")
