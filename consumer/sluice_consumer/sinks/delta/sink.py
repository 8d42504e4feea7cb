"""Appends batches to a Delta table, each once (docs/sinks.md, "Delta").

Delta keeps the last `txnVersion` of every `txnAppId` in the table's log. It skips a write whose version it has. Of two writes at the same time it
refuses one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer import pipelines
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import options, rows
from sluice_consumer.sinks.conflicts import CommitConflict, Retries
from sluice_consumer.sinks.delta.history import KnownBatches, check_held, marked
from sluice_consumer.sinks.delta.table import FASTER, SETTINGS, DeltaTable, require
from sluice_consumer.sinks.edge import chain, in_terms_of

log = logging.getLogger(__name__)
CONCURRENT = re.compile(r"Concurrent\w+Exception|(Metadata|Protocol)ChangedException|DeltaConcurrentModificationException")
"""Delta's words for another writer that was faster."""


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
            Refused: an option is wrong, this Spark or its session has no Delta, there is no such table, or it forgets batches.
            SinkUnavailable: the store does not answer.
        """
        given = options.known(args, options.DeltaArguments)
        table, asked, create = target(given), options.rows(given), options.create(given)
        rows.check(spark, asked)
        require(spark)
        with in_terms_of(table.field, table.place):
            if table.exists(spark):
                KnownBatches.read(spark, table).check()
            elif not create:
                raise table.missing(asked)

    def __call__(self, batch: DataFrame, info: BatchInfo, **given: Unpack[options.DeltaArguments]) -> None:
        """Adds the rows of one batch. Keyword arguments replace `info.args`. Of a batch that the table holds, no rows are made.

        Raises:
            Refused, SinkUnavailable: see `prepare`; or the rows do not fit the table, or its owner took the batch out of it again.
            Else what Spark raises. Nothing is added then.
        """
        args = options.known(given or info.args, options.DeltaArguments)
        table, asked, spark = target(args), options.rows(args), batch.sparkSession
        with in_terms_of(table.field, table.place):
            there = table.exists(spark)
            if there and _holds(spark, table, info):
                pipelines.LETTERS.storing(info.consumer)
                return
            if not there and not options.create(args):
                raise table.missing(asked)
        made = rows.rows(batch, asked)
        with in_terms_of(table.field, table.place), rows.file_size(spark, asked):
            if not there:
                table.create(made, asked)
            pipelines.LETTERS.storing(info.consumer)
            retries = Retries()
            while not _added(made, table, info, rows.partition_columns(asked), retries):
                pass


def _holds(spark: SparkSession, table: DeltaTable, info: BatchInfo) -> bool:
    """Whether the table holds the batch. Asked before its rows are made: of a batch that is held, nothing can fail any more."""
    known = KnownBatches.read(spark, table)
    known.check()
    application = known.application(info.consumer)
    if (last := known.last(application)) < info.batch:
        return False
    if last == info.batch:
        check_held(spark, table, (info.consumer, application, info.batch))
    log.info("batch %s of %s is in the table already, as its log says", info.batch, application)
    return True


def _added(made: DataFrame, table: DeltaTable, info: BatchInfo, partitions: Sequence[str], retries: Retries) -> bool:
    """Whether the table holds the batch now; False: another writer was faster, after a pause."""
    spark = made.sparkSession
    if _holds(spark, table, info):
        return True
    application = KnownBatches.read(spark, table).application(info.consumer)
    writer = made.write.format("delta").mode("append").option("txnAppId", application).option("txnVersion", info.batch)
    try:
        _append(writer.option("userMetadata", marked(application, info.batch)).partitionBy(*partitions), made, table)
    except (Py4JJavaError, PySparkException) as error:
        conflict = next((each for each in chain(error) if CONCURRENT.fullmatch(each.name)), None)
        if conflict is None:
            raise
        retries.pause(CommitConflict(f"{conflict.name}: {(conflict.message.splitlines() or [''])[0]}"))
        return False
    return True


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
