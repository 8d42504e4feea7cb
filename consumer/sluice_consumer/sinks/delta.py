"""Appends batches to a Delta table, each once (docs/sinks.md, "Delta").

Delta keeps the last `txnVersion` of every `txnAppId` in the table's log. It skips a write whose version it has. Of two writes at the same time it
refuses one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import options, rows

PROVIDER = "org.apache.spark.sql.delta.sources.DeltaDataSource"


class Delta:
    """The sink `sluice_consumer.sinks:delta`.

    `args.path` or `args.table`; a path that holds no table becomes one with the first batch. Rows are described by `options.RowOptions`.
    """

    def prepare(self, spark: SparkSession, args: Mapping[str, Any]) -> None:
        """Refuses what would fail, before the first batch.

        Raises:
            Refused: an option is wrong, or this Spark has no Delta.
        """
        given = options.known(args, "path", "table")
        _target(given)
        rows.check(spark, options.rows(given))
        _require_delta(spark)

    def __call__(self, batch: DataFrame, info: BatchInfo, **given: Any) -> None:
        """Adds the rows of one batch. Keyword arguments stand in for `info.args`.

        Raises:
            Refused: see `prepare`. Else what Spark raises: nothing is added then.
        """
        args = options.known(given or info.args, "path", "table")
        name, place = _target(args)
        asked = options.rows(args)
        made = rows.rows(batch, asked)
        writer = made.write.format("delta").mode("append").option("txnAppId", info.consumer).option("txnVersion", info.batch)
        with rows.file_size(batch.sparkSession, asked):
            _write(writer.partitionBy(*rows.partition_columns(asked)), name, place)


def _write(writer: DataFrameWriter, name: str, place: str) -> None:
    if name == "table":
        writer.saveAsTable(place)
    else:
        writer.save(place)


def _target(args: Mapping[str, Any]) -> tuple[str, str]:
    named = [name for name in ("path", "table") if args.get(name)]
    if len(named) != 1:
        raise Refused(f"pipeline.args: the delta sink needs one of path and table, and was given {' and '.join(named) or 'none'}")
    return named[0], options.text(args, named[0], "")


def _require_delta(spark: SparkSession) -> None:
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no such call
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    if loader.getResource(PROVIDER.replace(".", "/") + ".class") is None:
        raise Refused("pipeline.entrypoint: this Spark has no Delta; use an image with it (docs/images.md)")


delta = Delta()
