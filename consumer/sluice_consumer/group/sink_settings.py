"""What the built-in sink of one consumer asks of Spark, where Spark started before the consumer came."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer import sinks
from sluice_consumer.config import Config
from sluice_consumer.spark.conf import EXTENSIONS


def give(spark: SparkSession, config: Config) -> None:
    """Sets in the consumer's session what its sink asks for. What `sparkConf` says stays.

    Raises:
        Refused: Spark takes a setting only when it starts, and was started without it.
    """
    for key, asked in sinks.settings(config.pipeline.entrypoint, config.pipeline.args).items():
        has: str | None = spark.conf.get(key, None)
        if key == EXTENSIONS and not set(asked.split(",")) <= set((has or "").split(",")):
            raise _missing(key, asked)
        if has is None:
            try:
                spark.conf.set(key, asked)
            except PySparkException as error:
                raise _missing(key, asked) from error


def _missing(key: str, asked: str) -> Refused:
    return Refused(f"pipeline.entrypoint: its sink needs {key}={asked}, and Spark was started without it; add it to sparkConf of the pool")
