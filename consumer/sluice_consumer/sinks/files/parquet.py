"""Writes batches as Parquet files, on S3 and elsewhere, each once (docs/sinks.md, "Parquet").

Readers of the files ask `committed_files` which of them count. It needs pyarrow, and no Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Unpack

from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from sluice_consumer import pipelines
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import options, rows
from sluice_consumer.sinks.edge import in_terms_of
from sluice_consumer.sinks.files import manifest, stores

EXAMPLE = "as in s3a://lake/orders"


class ParquetFiles:
    """The sink `sluice_consumer.sinks:parquet`.

    `args.path`: on S3, HDFS or a disk that all pods mount. Rows are described by `options.RowOptions`. Only the files that a manifest names count:
    `committed_files` lists them.
    """

    def prepare(self, spark: SparkSession, args: Mapping[str, Any]) -> None:
        """Refuses what would fail, before the first batch.

        Raises:
            Refused: an option is wrong, the path's file system has no conditional write, or the store refuses a look.
            SinkUnavailable: the store does not answer.
        """
        given = options.known(args, options.FileArguments)
        rows.check(spark, options.rows(given))
        root = options.text(given, "path", EXAMPLE)
        with in_terms_of("pipeline.args.path", root):
            stores.hadoop_store(spark, root).exists(root)

    def __call__(self, batch: DataFrame, info: BatchInfo, **given: Unpack[options.FileArguments]) -> None:
        """Writes one batch. Keyword arguments replace `info.args`. Of a batch that has a manifest, no rows are made.

        Raises:
            Refused, SinkUnavailable: see `prepare`; nothing counts then. Else what the file system or Spark raises.
        """
        args = options.known(given or info.args, options.FileArguments)
        root, asked = options.text(args, "path", EXAMPLE).rstrip("/"), options.rows(args)
        with in_terms_of("pipeline.args.path", root):
            store, place = stores.hadoop_store(batch.sparkSession, root), manifest.BatchFiles(root, info.consumer, info.batch)
            held = store.exists(place.manifest)
        if held:
            pipelines.LETTERS.storing(info.consumer)
        else:
            writer = rows.rows(batch, asked).write.partitionBy(*rows.partition_columns(asked))
            with in_terms_of("pipeline.args.path", root), rows.file_size(batch.sparkSession, asked):
                pipelines.LETTERS.storing(info.consumer)
                manifest.write_once(store, place, writer.parquet)
        with in_terms_of("pipeline.args.path", root):
            manifest.clean(store, place, manifest.from_json(store.read(place.manifest)))


parquet = ParquetFiles()


def committed_files(path: str, consumer: str | None = None, filesystem: fs.FileSystem | None = None) -> list[str]:
    """The data files below a sink's path that a manifest names, oldest batch first within a consumer.

    Args:
        path: `args.path` of the sink; `s3a://` is read as `s3://`.
        consumer: only of this consumer (`info.consumer`).
        filesystem: where the path is, if its scheme does not say; then paths are those of this file system.

    Returns:
        Paths for the file system, as `pyarrow.dataset.dataset(paths, filesystem=…)` takes them.

    Raises:
        ValueError: a manifest is of a format that this version does not know.
    """
    if filesystem is None:
        filesystem, path = fs.FileSystem.from_uri(re.sub(r"^s3a:", "s3:", path))
    root = path.rstrip("/")
    folder = f"{root}/_sluice/{consumer}" if consumer else f"{root}/_sluice"
    listed = filesystem.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    manifests = sorted(info.path for info in listed if info.is_file and info.path.endswith(".json"))
    return [f"{root}/{file.path}" for name in manifests for file in _read(filesystem, name)]


def _read(filesystem: fs.FileSystem, name: str) -> tuple[manifest.DataFile, ...]:
    with filesystem.open_input_stream(name) as stream:
        return manifest.from_json(stream.read())
