"""A Delta table by its path or its name: whether it is there, how it is made, and what of the rows it does not take."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import rows
from sluice_consumer.sinks.edge import has_class
from sluice_consumer.sinks.options import RowOptions

PROVIDER = "org.apache.spark.sql.delta.sources.DeltaDataSource"
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What Delta asks of a session. They count when the session starts, and not later."""
FASTER = {"spark.databricks.delta.snapshotPartitions": "2"}
"""Delta reads its log in so many tasks for every batch. Its default, 50, doubles the time of a small batch (measured)."""

HALF_MADE = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
MAKING_SECONDS = 10.0  # for which another driver may be making the table


def require(spark: SparkSession) -> None:
    """Makes sure that there is Delta.

    Raises:
        Refused: the jar is missing, or the session was started without Delta's settings.
    """
    if not has_class(spark, PROVIDER):
        raise Refused("pipeline.entrypoint: this Spark has no Delta; use an image with it (docs/images.md)")
    for name, value in SETTINGS.items():
        if value not in (spark.conf.get(name, "") or ""):
            lines = "; ".join(f"{each}: {needed}" for each, needed in SETTINGS.items())
            raise Refused(f"sparkConf: {name}: does not name Delta; start the session with {lines}")


@dataclass(frozen=True)
class DeltaTable:
    """A table that may be there.

    Attributes:
        field: of the configuration, which names it.
        place: path, or name.
        named: the table is given by name.
    """

    field: str
    place: str
    named: bool

    @property
    def identifier(self) -> str:
        """As SQL has it."""
        return self.place if self.named else "delta.`" + self.place.replace("`", "``") + "`"

    def exists(self, spark: SparkSession) -> bool:
        """Whether there is such a table. A store that refuses a look raises."""
        if self.named:
            return spark.catalog.tableExists(self.place)
        jvm: Any = spark._jvm  # noqa: SLF001 - Delta's own package for Python is not in the image
        return bool(jvm.io.delta.tables.DeltaTable.isDeltaTable(spark._jsparkSession, self.place))  # noqa: SLF001

    def missing(self, options: RowOptions) -> Refused:
        """The refusal of a table that does not exist, with the statement that creates it."""
        made = self.statement(options.schema or "columns of the rows", options)
        return Refused(f"{self.field}: {self.place}: there is no such Delta table; set pipeline.args.create: true, or create it: {made}")

    def create(self, made: DataFrame, options: RowOptions) -> None:
        """Makes it with the columns of the rows, if there is none. Of two drivers at once, one may be refused: the other has made it.

        The other may still be at it: its folder is there, and no version of the table is. Then it is asked for again for some seconds.
        """
        spark, patience = made.sparkSession, time.monotonic() + MAKING_SECONDS
        while True:
            try:
                spark.sql(self.statement(rows.columns(made), options))
            except Exception as error:
                if self.exists(spark):
                    return
                if HALF_MADE not in str(error) or time.monotonic() > patience:
                    raise
                time.sleep(MAKING_SECONDS / 50)
            else:
                return

    def statement(self, columns: str, options: RowOptions) -> str:
        """What makes it, with these columns (DDL)."""
        partitions = rows.partition_columns(options)
        added = "".join(f", {column} STRING" for column in partitions if column not in columns)
        return f"CREATE TABLE IF NOT EXISTS {self.identifier} ({columns}{added}) USING delta" + (
            f" PARTITIONED BY ({', '.join(partitions)})" if partitions else ""
        )

    def difference(self, made: DataFrame) -> str | None:
        """The columns of the rows that the table lacks, or has of another type; None: it is not that, or the table cannot be read."""
        try:
            there = made.sparkSession.table(self.identifier).schema
        except AnalysisException:
            return None
        return difference(made.schema, there)


def difference(rows_have: StructType, table_has: StructType) -> str | None:
    """The columns of the rows that a table lacks, or has of another type, with what to do; None: there are none. Pure."""
    types = {field.name.lower(): field.dataType for field in table_has}
    lacking = [field.name for field in rows_have if field.name.lower() not in types]
    other = [
        f"{field.name} is {field.dataType.simpleString()} in the rows, and {types[field.name.lower()].simpleString()} in the table"
        for field in rows_have
        if field.name.lower() in types and types[field.name.lower()] != field.dataType
    ]
    differences = ([f"it has no column {', '.join(lacking)}"] if lacking else []) + other
    return f"{'; '.join(differences)}; change pipeline.args.schema, keep or transform, or the table" if differences else None
