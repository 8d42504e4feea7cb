"""From a batch to the rows of a sink: decode, transform, partition, size of files (docs/sinks.md, "Rows")."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks.json import documents
from sluice_consumer.sinks.options import RowOptions, function

ARRIVAL = "approximateArrivalTimestamp"
PARTITION_COLUMNS = {"day": "arrival_day", "hour": "arrival_hour"}
DAY = f"CAST(date_from_unix_date(CAST(unix_seconds({ARRIVAL}) DIV 86400 AS INT)) AS STRING)"  # in UTC, whatever the session's zone is
PARTITIONS = {"day": DAY, "hour": f"{DAY} || '-' || lpad(CAST(unix_seconds({ARRIVAL}) DIV 3600 % 24 AS STRING), 2, '0')"}
FILE_SIZE = "spark.sql.adaptive.advisoryPartitionSizeInBytes"


def check(spark: SparkSession, options: RowOptions) -> None:
    """Refuses what would fail, or lose a column, in the first batch.

    Raises:
        Refused: the schema is no DDL, one of its columns has the name of a column of the batch, or `transform` cannot be loaded.
    """
    if options.schema:
        _schema(spark, options, options.schema)
    if options.transform:
        function(options.transform, "pipeline.args.transform")


def rows(batch: DataFrame, options: RowOptions) -> DataFrame:
    """The rows that a sink stores.

    A document that does not fit its schema fails the batch, unless the schema has a column `_corrupt_record STRING`: then it is kept there.

    Raises:
        Refused: see `check`; `transform` returned no DataFrame, or rows without the column that `partition` needs. Else what it raises.
    """
    made = _decoded(batch, options)
    if options.transform:
        made = _transformed(made, options.transform)
    if options.partition:
        made = _partitioned(made, options.partition)
    if options.schema and ARRIVAL not in options.keep and not options.transform:
        made = made.drop(ARRIVAL)
    return _sized(made, options)


def _schema(spark: SparkSession, options: RowOptions, ddl: str) -> StructType:
    """Columns of documents, none of which another column would replace."""
    schema = documents.schema_of(spark, ddl)
    ours = [name.lower() for name in (ARRIVAL, *partition_columns(options))]
    if taken := [name for name in schema.fieldNames() if name.lower() in ours]:
        raise Refused(
            f"pipeline.args.schema: {taken[0]} is a column that the sink adds or needs itself; leave it out, or rename it in a process of your own "
            "with sluice_consumer.sinks.json_rows"
        )
    documents.refuse_twice([*schema.fieldNames(), *dict.fromkeys(options.keep)], "pipeline.args.schema, pipeline.args.keep")
    return schema


def _decoded(batch: DataFrame, options: RowOptions) -> DataFrame:
    if options.schema is None:
        return batch
    schema = _schema(batch.sparkSession, options, options.schema)
    kept = dict.fromkeys([*options.keep, *([ARRIVAL] if options.partition or options.transform else [])])
    return documents.decoded(batch, schema, tuple(kept), lines=options.lines)


def _transformed(made: DataFrame, name: str) -> DataFrame:
    transformed = function(name, "pipeline.args.transform")(made)
    if not isinstance(transformed, DataFrame):
        raise Refused(f"pipeline.args.transform: {name} returned a {type(transformed).__name__}, no DataFrame; let it return the rows")
    return transformed


def _partitioned(made: DataFrame, unit: str) -> DataFrame:
    if ARRIVAL not in made.columns:
        raise Refused(f"pipeline.args.partition: the rows have no column {ARRIVAL}; let pipeline.args.transform keep it")
    return made.withColumn(PARTITION_COLUMNS[unit], f.expr(PARTITIONS[unit]))


def _sized(made: DataFrame, options: RowOptions) -> DataFrame:
    """Rows are shuffled, and Spark's adaptive execution joins or splits what comes of it by bytes (`file_size`)."""
    if options.file_bytes is None:
        return made
    return made.hint("rebalance", *([PARTITION_COLUMNS[options.partition]] if options.partition else []))


@contextmanager
def file_size(spark: SparkSession, options: RowOptions) -> Iterator[None]:
    """Spark reads the size when the rows are written. Afterwards the session has what it had, so the user's queries keep their own."""
    if options.file_bytes is None:
        yield
        return
    before = spark.conf.get(FILE_SIZE, None)
    spark.conf.set(FILE_SIZE, str(options.file_bytes))
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(FILE_SIZE)
        else:
            spark.conf.set(FILE_SIZE, before)


def columns(made: DataFrame) -> str:
    """The rows' columns as DDL; none of them is NOT NULL, so that a table can take other rows later."""
    return str(made._jdf.schema().asNullable().toDDL())  # noqa: SLF001 - what PySpark has quotes no names


def partition_columns(options: RowOptions) -> list[str]:
    """The columns that files are grouped by."""
    return [PARTITION_COLUMNS[options.partition]] if options.partition else []
