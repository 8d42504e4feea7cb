"""What a pipeline needs of Spark's class path, from its configuration alone. Pure.

Of a built-in sink this is certain, and so are its options. A function of the user's may do anything with its arguments: there it is a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sluice_consumer.config import Config
from sluice_consumer.sinks import options
from sluice_consumer.sinks.delta.sink import target
from sluice_consumer.sinks.delta.table import PROVIDER
from sluice_consumer.sinks.files import stores
from sluice_consumer.sinks.files.parquet import EXAMPLE as PATH_EXAMPLE
from sluice_consumer.sinks.foreach import EXAMPLE as FUNCTION_EXAMPLE
from sluice_consumer.sinks.iceberg.catalog import CATALOG_CLASS
from sluice_consumer.sinks.iceberg.sink import EXAMPLE as TABLE_EXAMPLE
from sluice_consumer.sinks.iceberg.sink import FIELD as TABLE_FIELD

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# Hadoop's core-default.xml, and the connectors' own manuals. `s3://` is left out: outside of EMR no class of Hadoop's has it, other libraries do.
FILE_SYSTEMS = {
    "s3a": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "hdfs": "org.apache.hadoop.hdfs.DistributedFileSystem",
    "abfs": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "abfss": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
    "wasb": "org.apache.hadoop.fs.azure.NativeAzureFileSystem",
    "wasbs": "org.apache.hadoop.fs.azure.NativeAzureFileSystem$Secure",
    "gs": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
}


@dataclass(frozen=True)
class Need:
    """A class that has to be there.

    Attributes:
        field, value: of the configuration, which need it.
        class_name: with its package.
        certain: False: only if the user's function hands the value to Spark.
        user: the sink that needs it.
    """

    field: str
    value: str
    class_name: str
    certain: bool = True
    user: str = "the sink"


def needs_of(config: Config) -> tuple[Need, ...]:
    """What the pipeline needs, and its folder of dead letters.

    Raises:
        Refused: an option of a built-in sink is wrong; the message names it.
    """
    entrypoint, args = config.pipeline.entrypoint, config.pipeline.args
    built_in = BUILT_IN.get(entrypoint)
    needs = list(built_in(args, config.spark_conf) if built_in else _own(entrypoint, args, config.spark_conf))
    if config.on_error and config.on_error.dead_letter and config.on_error.dead_letter.path:
        path = config.on_error.dead_letter.path
        needs += _stored("onError.deadLetter.path", path, config.spark_conf)
    return tuple(needs)


def scheme_of(path: str) -> str | None:
    """In lower case; None: the path has none, and Hadoop's default counts."""
    match = SCHEME.match(path)
    return match[1].lower() if match else None


def _parquet(args: Mapping[str, Any], conf: Mapping[str, str]) -> Iterator[Need]:
    given = options.known(args, options.FileArguments)
    options.rows(given)
    yield from _stored("pipeline.args.path", options.text(given, "path", PATH_EXAMPLE), conf)


def _delta(args: Mapping[str, Any], conf: Mapping[str, str]) -> Iterator[Need]:
    given = options.known(args, options.DeltaArguments)
    table = target(given)
    options.rows(given)
    options.create(given)
    yield Need(table.field, table.place, PROVIDER)
    if not table.named:
        yield from _file_system(table.field, table.place, conf)


def _iceberg(args: Mapping[str, Any], _conf: Mapping[str, str]) -> Iterator[Need]:
    given = options.known(args, options.TableArguments)
    options.rows(given)
    options.create(given)
    yield Need(TABLE_FIELD, options.text(given, "table", TABLE_EXAMPLE), CATALOG_CLASS)


def _foreach(args: Mapping[str, Any], _conf: Mapping[str, str]) -> Iterator[Need]:
    options.text(args, "function", FUNCTION_EXAMPLE)
    yield from ()


def _console(_args: Mapping[str, Any], _conf: Mapping[str, str]) -> Iterator[Need]:
    yield from ()


BUILT_IN: dict[str, Callable[[Mapping[str, Any], Mapping[str, str]], Iterator[Need]]] = {
    "sluice_consumer.pipelines:console": _console,
    "sluice_consumer.sinks:delta": _delta,
    "sluice_consumer.sinks:foreach": _foreach,
    "sluice_consumer.sinks:iceberg": _iceberg,
    "sluice_consumer.sinks:parquet": _parquet,
}


def _own(entrypoint: str, args: Mapping[str, Any], conf: Mapping[str, str]) -> Iterator[Need]:
    for name, value in args.items():
        if isinstance(value, str):
            for need in _file_system(f"pipeline.args.{name}", value, conf):
                yield Need(need.field, need.value, need.class_name, certain=False, user=entrypoint)


def _stored(field: str, path: str, conf: Mapping[str, str]) -> Iterator[Need]:
    """Of a folder in which files are created on a condition."""
    scheme = scheme_of(path)
    if scheme not in {None, *stores.KINDS}:
        raise stores.unconditional(field, path, str(scheme))
    yield from _file_system(field, path, conf)


def _file_system(field: str, path: str, conf: Mapping[str, str]) -> Iterator[Need]:
    scheme = scheme_of(path) or ""
    name = conf.get(f"spark.hadoop.fs.{scheme}.impl") or FILE_SYSTEMS.get(scheme)
    if name:
        yield Need(field, path, name)
