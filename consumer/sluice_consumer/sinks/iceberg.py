"""Appends batches to an Iceberg table, each once (docs/sinks.md, "Iceberg")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import options, rows
from sluice_consumer.sinks.iceberg_table import IcebergTable
from sluice_consumer.sinks.once import add_once

EXAMPLE = "name it with its catalog, as in lake.db.orders"


class Iceberg:
    """The sink `sluice_consumer.sinks:iceberg`.

    `args.table`: catalog, namespace and name. The catalog is one of `sparkConf` (`spark.sql.catalog.<name>`). Rows are described by the options of
    `options.RowOptions`. The table exists: its owner decides on columns, partitions and properties.
    """

    def prepare(self, spark: SparkSession, args: Mapping[str, Any]) -> None:
        """Refuses what would fail, before the first batch.

        Raises:
            Refused: an option is wrong, this Spark has no Iceberg, or there is no such table.
        """
        given = options.known(args, "table")
        rows.check(spark, options.rows(given))
        IcebergTable.load(spark, options.text(given, "table", EXAMPLE))

    def __call__(self, batch: DataFrame, info: BatchInfo, **given: Any) -> None:
        """Adds the rows of one batch. Keyword arguments stand in for `info.args`.

        Raises:
            Refused: see `prepare`; or the rows do not fit the table. MarkMoved: see `add_once`. Else what Spark or the catalog raises.
        """
        args = options.known(given or info.args, "table")
        table = IcebergTable.load(batch.sparkSession, options.text(args, "table", EXAMPLE))
        asked = options.rows(args)
        table.frame = rows.rows(batch, asked)
        with rows.file_size(batch.sparkSession, asked):
            add_once(table, info.consumer, info.batch)


iceberg = Iceberg()
