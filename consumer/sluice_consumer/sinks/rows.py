"""From a batch to the rows of a sink: decode, transform, partition, size of files (docs/sinks.md, "Rows")."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks.options import RowOptions, function

ARRIVAL = "approximateArrivalTimestamp"
CORRUPT = "_corrupt_record"
PARTITION_COLUMNS = {"day": "arrival_day", "hour": "arrival_hour"}
FILE_SIZE = "spark.sql.adaptive.advisoryPartitionSizeInBytes"


def check(spark: SparkSession, options: RowOptions) -> None:
    """Refuses what would fail in the first batch.

    Raises:
        Refused: the schema is no DDL, or `transform` cannot be loaded.
    """
    if options.schema:
        schema_of(spark, options.schema)
    if options.transform:
        function(options.transform, "pipeline.args.transform")


def schema_of(spark: SparkSession, ddl: str) -> StructType:
    """The columns of JSON documents.

    Raises:
        Refused: Spark does not understand the DDL.
    """
    try:
        found = spark.createDataFrame([], ddl).schema
    except Exception as error:
        raise Refused(f"pipeline.args.schema: {ddl!r} is no list of columns: {str(error).splitlines()[0]}") from error
    return found


def rows(batch: DataFrame, options: RowOptions) -> DataFrame:
    """The rows that a sink stores.

    A document that does not fit its schema fails the batch, unless the schema has a column `_corrupt_record STRING`: then it is kept there.

    Raises:
        Refused: `transform` returned no DataFrame, or rows without the column that `partition` needs. Else what it raises.
    """
    made = _decoded(batch, options)
    if options.transform:
        made = _transformed(made, options.transform)
    if options.partition:
        made = _partitioned(made, options.partition)
    if options.schema and ARRIVAL not in options.keep and not options.transform:
        made = made.drop(ARRIVAL)
    return _sized(made, options)


def _decoded(batch: DataFrame, options: RowOptions) -> DataFrame:
    if options.schema is None:
        return batch
    schema = schema_of(batch.sparkSession, options.schema)
    mode = "PERMISSIVE" if CORRUPT in schema.fieldNames() else "FAILFAST"
    document = f.from_json(f.decode("data", "UTF-8"), schema, {"mode": mode, "columnNameOfCorruptRecord": CORRUPT})
    kept = dict.fromkeys([*options.keep, *([ARRIVAL] if options.partition or options.transform else [])])
    return batch.select(document.alias("document"), *kept).select("document.*", *kept)


def _transformed(made: DataFrame, name: str) -> DataFrame:
    found = function(name, "pipeline.args.transform")(made)
    if not isinstance(found, DataFrame):
        raise Refused(f"pipeline.args.transform: {name} returned a {type(found).__name__}, no DataFrame; let it return the rows")
    return found


def _partitioned(made: DataFrame, unit: str) -> DataFrame:
    if ARRIVAL not in made.columns:
        raise Refused(f"pipeline.args.partition: the rows have no column {ARRIVAL}; let pipeline.args.transform keep it")
    return made.withColumn(PARTITION_COLUMNS[unit], f.date_format(ARRIVAL, "yyyy-MM-dd" if unit == "day" else "yyyy-MM-dd-HH"))


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
