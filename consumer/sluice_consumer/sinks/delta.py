"""Appends batches to a Delta table, each once (docs/sinks.md, "Delta").

Delta keeps the last `txnVersion` of every `txnAppId` in the table's log. It skips a write whose version it has. Of two writes at the same time it
refuses one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import options, rows
from sluice_consumer.sinks.delta_table import FASTER, SETTINGS, DeltaTable, require
from sluice_consumer.sinks.edge import told

OWN = ("path", "table", "create")


class Delta:
    """The sink `sluice_consumer.sinks:delta`.

    `args.path` or `args.table`. Rows are described by `options.RowOptions`. With `args.create` a table that is not there is made.
    """

    def settings(self, _args: Mapping[str, Any]) -> dict[str, str]:
        """What the session has to be started with, and what makes small batches fast. Pure."""
        return SETTINGS | FASTER

    def prepare(self, spark: SparkSession, args: Mapping[str, Any]) -> None:
        """Refuses what would fail, before the first batch.

        Raises:
            Refused: an option is wrong, this Spark or its session has no Delta, or there is no such table.
            SinkUnavailable: the store does not answer.
        """
        given = options.known(args, *OWN)
        table, asked, create = target(given), options.rows(given), options.create(given)
        rows.check(spark, asked)
        require(spark)
        with told(table.field, table.place):
            if not table.exists(spark) and not create:
                raise table.missing(asked)

    def __call__(self, batch: DataFrame, info: BatchInfo, **given: Any) -> None:
        """Adds the rows of one batch. Keyword arguments stand in for `info.args`.

        Raises:
            Refused, SinkUnavailable: see `prepare`; or the rows do not fit the table. Else what Spark raises. Nothing is added then.
        """
        args = options.known(given or info.args, *OWN)
        table, asked, spark = target(args), options.rows(args), batch.sparkSession
        made = rows.rows(batch, asked)
        with told(table.field, table.place), rows.file_size(spark, asked):
            if not table.exists(spark):
                if not options.create(args):
                    raise table.missing(asked)
                table.create(made, asked)
            writer = made.write.format("delta").mode("append").option("txnAppId", info.consumer).option("txnVersion", info.batch)
            _append(writer.partitionBy(*rows.partition_columns(asked)), made, table)


def _append(writer: DataFrameWriter, made: DataFrame, table: DeltaTable) -> None:
    try:
        writer.saveAsTable(table.place) if table.named else writer.save(table.place)
    except AnalysisException as error:
        if difference := table.difference(made):
            raise Refused(f"{table.field}: {table.place}: the rows do not fit the table: {difference}") from error
        raise


def target(args: Mapping[str, Any]) -> DeltaTable:
    """The table that the options name.

    Raises:
        Refused: none, or two.
    """
    named = [name for name in ("path", "table") if args.get(name)]
    if len(named) != 1:
        raise Refused(f"pipeline.args: the delta sink needs one of path and table, and was given {' and '.join(named) or 'none'}")
    return DeltaTable(f"pipeline.args.{named[0]}", options.text(args, named[0], ""), named=named[0] == "table")


delta = Delta()
