"""Where an Iceberg table is: its catalog alone is asked first, since Spark takes one that fails for a namespace of its own."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import rows
from sluice_consumer.sinks.edge import has_class
from sluice_consumer.sinks.options import RowOptions

CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"
PREFIX = "spark.sql.catalog."
PARTS = 3  # catalog, namespace, name


def require(spark: SparkSession, name: str) -> None:
    """Makes sure that there is Iceberg, and such a catalog.

    Raises:
        Refused: there is none; the message says what to do. Py4JJavaError: the catalog cannot be made, or does not answer.
    """
    if not has_class(spark, CATALOG_CLASS):
        raise Refused(f"pipeline.args.table: {name}: this Spark has no Iceberg; use an image with it (docs/images.md)")
    catalog, *_ = parts(spark, name)
    if spark.conf.get(f"{PREFIX}{catalog}", None) is None:
        raise Refused(
            f"sparkConf: {PREFIX}{catalog}: missing, so that there is no catalog {catalog} for pipeline.args.table {name}; "
            f"set it to {CATALOG_CLASS}, with {PREFIX}{catalog}.type and .warehouse, or name another catalog"
        )
    session: Any = spark._jsparkSession  # noqa: SLF001 - PySpark has no such call
    session.sessionState().catalogManager().catalog(catalog)


def exists(spark: SparkSession, name: str) -> bool:
    """Whether there is such a table. A view of that name counts, and is refused when it is loaded."""
    return spark.catalog.tableExists(name)


def missing(name: str, options: RowOptions) -> Refused:
    """The refusal of a table that does not exist, with the statement that creates it."""
    return Refused(
        f"pipeline.args.table: {name}: there is no such table; set pipeline.args.create: true, or create it: "
        f"{statement(name, options.schema or 'columns of the rows', options)}"
    )


def create(made: DataFrame, name: str, options: RowOptions) -> None:
    """Makes the table with the columns of the rows, on the condition that there is none. Of two drivers that do so one makes it."""
    spark = made.sparkSession
    if not exists(spark, name):
        spark.sql(statement(name, rows.columns(made), options))


def statement(name: str, columns: str, options: RowOptions) -> str:
    """What makes the table, with these columns (DDL)."""
    partitions = f" PARTITIONED BY ({', '.join(columns_of_partitions)})" if (columns_of_partitions := rows.partition_columns(options)) else ""
    added = "".join(f", {column} STRING" for column in columns_of_partitions if column not in columns)
    return f"CREATE TABLE IF NOT EXISTS {name} ({columns}{added}) USING iceberg{partitions} TBLPROPERTIES ('format-version'='2')"


def parts(spark: SparkSession, name: str) -> list[str]:
    """Catalog, namespaces and name, without quotes.

    Raises:
        Refused: it has no catalog, or no namespace.
    """
    session: Any = spark._jsparkSession  # noqa: SLF001
    names = [str(name_part) for name_part in session.sessionState().sqlParser().parseMultipartIdentifier(name).toList().mkString("\n").split("\n")]
    if len(names) < PARTS:
        raise Refused(f"pipeline.args.table: {name}: has no catalog or no namespace; name it with its catalog, as in lake.db.orders")
    return names
