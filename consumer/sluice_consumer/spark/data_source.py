"""The Spark data source `sluice`: one load reads one micro-batch, one stream all of them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from sluice_consumer.columns import DDL, FORMAT
from sluice_consumer.spark import python_workers
from sluice_consumer.spark.batch_read import BatchRead, PlannedBatch, freeze

OPTION = "batch"
python_workers.fold_hang_ups()  # of a worker that plans a query; some only read what another one pickled, and call nothing of it


class SluiceDataSource(DataSource):
    """`spark.read.format("sluice")`.

    Spark pickles it for the planning worker. That one pickles it to every task beside the reader: without its options then, which name all shards.
    """

    _planned = False

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> str:
        """The columns, as DDL."""
        _began()
        return str(DDL)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the schema is always ours
        """The reader of one batch."""
        _began()
        self._planned = True
        return PlannedBatch(BatchRead.from_json(self.options[OPTION]))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"options": {}} if self._planned else {})

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - as above; Spark's name
        """The reader of all batches (docs/structured-streaming.md)."""
        from sluice_consumer.spark import stream_reader  # noqa: PLC0415 - a batch has no use for it

        return stream_reader.from_options(self.options)


def _began() -> None:
    freeze("imported")
    python_workers.forget_archives()


def register(spark: SparkSession, source: type[DataSource]) -> None:
    """Registers a source in this session, though another session of the same Spark has it.

    Spark asks the thread's active session whether a name is taken, and not the one that registers. So the session becomes the active one of this
    thread, as in PySpark's own `createDataFrame`.
    """
    SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)  # noqa: SLF001 - PySpark does not show it
    spark.dataSource.register(source)
