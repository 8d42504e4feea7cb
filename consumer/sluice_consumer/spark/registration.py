"""Data sources of Python in a session of Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource


def register(spark: SparkSession, source: type[DataSource]) -> None:
    """Registers a source in this session, though another session of the same Spark has it.

    Spark asks the thread's active session whether a name is taken, and not the one that registers. So the session becomes the active one of this
    thread, as in PySpark's own `createDataFrame`.
    """
    SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)  # noqa: SLF001 - PySpark does not show it
    spark.dataSource.register(source)
