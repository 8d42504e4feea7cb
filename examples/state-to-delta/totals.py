"""Keeps a total for each customer in Spark's state, and merges it into a Delta table.

`python totals.py --config FILE [--until-tip]`
"""

import argparse
import json
import signal
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluice_consumer import streaming
from sluice_consumer.sinks import json_rows

TABLE = "CREATE TABLE IF NOT EXISTS delta.`{path}` (customer STRING, orders BIGINT, amount DECIMAL(22, 2)) USING delta"
MERGE = """
    MERGE INTO delta.`{path}` AS t USING totals AS s ON t.customer = s.customer
    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
"""


def totals(stream: DataFrame) -> DataFrame:
    """The state: orders and amount of every customer since the beginning."""
    orders = json_rows(stream, "customer STRING, amount DECIMAL(12, 2)")
    return orders.groupBy("customer").agg(f.count("*").alias("orders"), f.sum("amount").alias("amount"))


def run(spark: SparkSession, settings: dict[str, Any], stop: threading.Event, *, until_tip: bool) -> None:
    """Runs the query until it is told to stop, or everything that had arrived is in the table. Then the lease is released."""
    path = settings["path"]
    spark.sql(TABLE.format(path=path))

    def merge(changed: DataFrame, _batch: int) -> None:
        # A total replaces the one before it, so a batch that comes again changes nothing.
        changed.createOrReplaceTempView("totals")
        changed.sparkSession.sql(MERGE.format(path=path))

    with streaming.source(spark, settings["consumer"]) as source:
        writer = totals(source.load()).writeStream.outputMode("update").option("checkpointLocation", settings["checkpoint"]).foreachBatch(merge)
        query = source.start(writer.trigger(availableNow=True) if until_tip else writer.trigger(processingTime="10 seconds"))
        while not stop.is_set() and not query.awaitTermination(1):
            pass


def main() -> None:
    """What the container runs."""
    options = argparse.ArgumentParser()
    options.add_argument("--config", type=Path, required=True)
    options.add_argument("--until-tip", action="store_true")
    given = options.parse_args()
    settings = json.loads(given.config.read_text())
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    spark = SparkSession.builder.config(map=settings["spark"]).getOrCreate()
    run(spark, settings, stop, until_tip=given.until_tip)
    spark.stop()


if __name__ == "__main__":
    main()
