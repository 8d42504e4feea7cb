"""A Spark session in Kubernetes, or a small job in one JVM that does what a batch of Sluice does: Python source, Arrow, Parquet, shuffle.

Run by `train.py` in the image while it is built, so that JVMs load the classes that drivers and executors need.
"""

import sys
import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition


class _Reader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(2)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"key": [f"{partition.value}"] * 10, "data": [b"x"] * 10})


class _Source(DataSource):
    @classmethod
    def name(cls) -> str:
        return "training"

    def schema(self) -> str:
        return "key string, data binary"

    def reader(self, schema: object) -> DataSourceReader:  # noqa: ARG002 - Spark's interface
        return _Reader()


def _batches(spark: SparkSession) -> None:
    spark.dataSource.register(_Source)
    for number in range(3):
        frame = spark.read.format("training").load()
        frame.mapInArrow(lambda batches: batches, frame.schema).write.mode("overwrite").parquet(f"file:///tmp/training/{number}")
        frame.write.format("noop").mode("overwrite").save()
        frame.groupBy("key").count().collect()
    assert spark.read.parquet("file:///tmp/training/0").count() == 20  # noqa: S101 - a build that trained on errors fails


def _executor(spark: SparkSession) -> None:
    while not spark.sparkContext._jsc.sc().getExecutorIds().size():  # noqa: SLF001 - PySpark does not show it
        time.sleep(0.5)


def main(master: str, driver: str, class_path: str, executor: str) -> None:
    """Runs it, and waits until the driver's JVM has ended in order: the JVM writes its list of classes then."""
    settings = {
        "spark.master": master,
        "spark.driver.extraClassPath": class_path,
        "spark.driver.defaultJavaOptions": driver,
        "spark.executor.defaultJavaOptions": executor,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.kubernetes.container.image": "any",
        "spark.kubernetes.executor.useDriverPodIP": "true",
        "spark.executor.instances": "1",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.decommission.enabled": "true",
        "spark.authenticate": "true",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = SparkSession.builder.config(map=settings).getOrCreate()
    if master.startswith("k8s"):
        _executor(spark)
    else:
        _batches(spark)
    gateway = spark.sparkContext._gateway.proc  # noqa: SLF001 - PySpark shows no way to wait for its JVM
    spark.stop()
    gateway.stdin.close()
    gateway.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
