"""What a pipeline needs of Spark's class path, and what of its options is wrong, is known from its configuration."""

from __future__ import annotations

from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.config import CheckpointsConfig, Config, DeadLetterConfig, OnErrorConfig, PipelineConfig, StreamConfig
from sluice_consumer.sinks import needs
from sluice_consumer.sinks.delta.table import PROVIDER
from sluice_consumer.sinks.iceberg.catalog import CATALOG_CLASS

S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def config(entrypoint: str, args: dict[str, Any], conf: dict[str, str] | None = None, letters: str | None = None) -> Config:
    on_error = OnErrorConfig(DeadLetterConfig(path=letters)) if letters else None
    return Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig(entrypoint, args), spark_conf=conf or {}, on_error=on_error)


def needed(*given: Any) -> list[tuple[str, str, bool]]:
    return [(need.field, need.class_name, need.certain) for need in needs.needs_of(config(*given))]


PATH, TABLE = "pipeline.args.path", "pipeline.args.table"


@pytest.mark.parametrize(
    ("entrypoint", "args", "found"),
    [
        ("sluice_consumer.sinks:parquet", {"path": "s3a://lake/orders"}, [(PATH, S3A, True)]),
        ("sluice_consumer.sinks:parquet", {"path": "S3A://lake/orders"}, [(PATH, S3A, True)]),
        ("sluice_consumer.sinks:parquet", {"path": "file:/lake"}, []),
        ("sluice_consumer.sinks:parquet", {"path": "/lake"}, []),
        ("sluice_consumer.sinks:iceberg", {"table": "lake.db.orders"}, [(TABLE, CATALOG_CLASS, True)]),
        ("sluice_consumer.sinks:delta", {"path": "s3a://lake/orders"}, [(PATH, PROVIDER, True), (PATH, S3A, True)]),
        ("sluice_consumer.sinks:delta", {"table": "db.orders"}, [(TABLE, PROVIDER, True)]),
        ("sluice_consumer.sinks:parquet", {"path": "hdfs://lake"}, [(PATH, needs.FILE_SYSTEMS["hdfs"], True)]),
        ("sluice_consumer.pipelines:console", {"path": "s3a://unused"}, []),
        ("orders:process", {"to": "abfss://lake@a.dfs.core.windows.net/x"}, [("pipeline.args.to", needs.FILE_SYSTEMS["abfss"], False)]),
        ("orders:process", {"to": "s3://for-another-library", "rows": 7, "url": "https://x/"}, []),
    ],
)
def test_what_is_needed(entrypoint: str, args: dict[str, Any], found: list[tuple[str, str, bool]]) -> None:
    assert needed(entrypoint, args) == found


def test_a_setting_names_another_class_for_a_scheme() -> None:
    conf = {"spark.hadoop.fs.s3a.impl": "com.example.Files", "spark.hadoop.fs.own.impl": "com.example.Own"}
    assert needed("sluice_consumer.sinks:parquet", {"path": "s3a://x"}, conf) == [(PATH, "com.example.Files", True)]
    assert needed("orders:process", {"to": "own://x"}, conf) == [("pipeline.args.to", "com.example.Own", False)]


def test_a_folder_of_dead_letters_is_needed_whatever_the_pipeline_is() -> None:
    """The first letter would find out else, in the middle of an incident."""
    assert needed("orders:process", {}, None, "s3a://letters/orders") == [("onError.deadLetter.path", S3A, True)]
    with pytest.raises(Refused, match=r"onError\.deadLetter\.path: gs://letters: Sluice does not know gs://"):
        needed("orders:process", {}, None, "gs://letters")


@pytest.mark.parametrize(
    ("entrypoint", "args", "why"),
    [
        ("sluice_consumer.sinks:parquet", {}, r"pipeline\.args\.path: missing"),
        ("sluice_consumer.sinks:parquet", {"path": "s3://lake"}, r"pipeline\.args\.path: s3://lake: Sluice does not know s3:// .*use s3a://"),
        ("sluice_consumer.sinks:parquet", {"path": "/lake", "pathh": 1}, r"pipeline\.args\.pathh: this sink has no such option"),
        ("sluice_consumer.sinks:iceberg", {"table": "a.b.c", "create": "yes"}, r"pipeline\.args\.create: 'yes' is neither"),
        ("sluice_consumer.sinks:delta", {}, r"pipeline\.args: the delta sink needs one of path and table"),
        ("sluice_consumer.sinks:foreach", {}, r"pipeline\.args\.function: missing; as in my_module:upsert"),
    ],
)
def test_a_wrong_option_of_a_built_in_sink_is_refused(entrypoint: str, args: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        needs.needs_of(config(entrypoint, args))


def test_each_built_in_sink_and_pipeline_is_known_here() -> None:
    """One that was forgotten would be taken for a function of the user's."""
    from sluice_consumer import pipelines, sinks  # noqa: PLC0415

    built_in = {
        f"{module.__name__}:{name}"
        for module in (pipelines, sinks)
        for name, value in vars(module).items()
        if hasattr(value, "prepare") and not isinstance(value, type)
    }
    assert built_in <= set(needs.BUILT_IN)
    assert len(built_in) >= 4
