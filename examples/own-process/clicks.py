"""Clicks of people, without their addresses, in a Delta table."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import delta, json_rows

CLICK = "id BIGINT, address STRING, page STRING, robot BOOLEAN"


def process(batch: DataFrame, info: BatchInfo) -> None:
    """One batch. Its return commits the batch, so the sink is called before."""
    delta(people(batch), info, **info.args)


def prepare(spark: SparkSession, args: Mapping[str, Any]) -> None:
    """Called once before the first batch: what cannot work is refused then."""
    delta.prepare(spark, args)


process.prepare = prepare  # type: ignore[attr-defined]  # what a consumer looks for


def people(batch: DataFrame) -> DataFrame:
    """Follows from the batch alone, so a batch that comes again has the same rows."""
    clicks = json_rows(batch, CLICK, keep=["approximateArrivalTimestamp"])
    person = f.sha2("address", 256).alias("person")
    return clicks.where("NOT robot").select("id", person, "page", f.col("approximateArrivalTimestamp").alias("arrived"))
