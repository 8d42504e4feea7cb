"""Appends batches to an Iceberg table, each once (docs/sinks.md, "Iceberg")."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession

from sluice_consumer import pipelines
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import options, rows
from sluice_consumer.sinks.edge import in_terms_of
from sluice_consumer.sinks.iceberg import catalog
from sluice_consumer.sinks.iceberg.once import add_once, holds
from sluice_consumer.sinks.iceberg.table import IcebergTable

log = logging.getLogger(__name__)
FIELD = "pipeline.args.table"
EXAMPLE = "name it with its catalog, as in lake.db.orders"


class Iceberg:
    """The sink `sluice_consumer.sinks:iceberg`.

    `args.table`: catalog, namespace and name. The catalog is one of `sparkConf` (`spark.sql.catalog.<name>`). Rows are described by the options of
    `options.RowOptions`. The owner of a table decides on columns, partitions and properties; with `args.create` a table that is not there is made.
    """

    def prepare(self, spark: SparkSession, args: Mapping[str, Any]) -> None:
        """Refuses what would fail, before the first batch.

        Raises:
            Refused: an option is wrong, this Spark has no Iceberg, or there is no such catalog or table. SinkUnavailable: it does not answer.
        """
        given = options.known(args, options.TableArguments)
        asked, name = options.rows(given), options.text(given, "table", EXAMPLE)
        rows.check(spark, asked)
        with in_terms_of(FIELD, name):
            catalog.require(spark, name)
            if not catalog.exists(spark, name) and not options.create(given):
                raise catalog.missing(name, asked)

    def __call__(self, batch: DataFrame, info: BatchInfo, **given: Unpack[options.TableArguments]) -> None:
        """Adds the rows of one batch. Keyword arguments replace `info.args`. Of a batch that the table holds, no rows are made.

        Raises:
            Refused, SinkUnavailable: see `prepare`; or the rows do not fit the table. MarkMoved: see `add_once`.
            Else what Spark or the catalog raises.
        """
        args = options.known(given or info.args, options.TableArguments)
        asked, name, spark = options.rows(args), options.text(args, "table", EXAMPLE), batch.sparkSession
        with in_terms_of(FIELD, name):
            if catalog.exists(spark, name) and holds(IcebergTable.load(spark, name), info.consumer, info.batch):
                pipelines.LETTERS.storing(info.consumer)
                log.info("batch %s of %s is in %s already", info.batch, info.consumer, name)
                return
        made = rows.rows(batch, asked)
        with in_terms_of(FIELD, name), rows.file_size(spark, asked):
            if options.create(args):
                catalog.create(made, name, asked)
            table = IcebergTable.load(spark, name)
            table.frame = made
            pipelines.LETTERS.storing(info.consumer)
            add_once(table, info.consumer, info.batch)


iceberg = Iceberg()
