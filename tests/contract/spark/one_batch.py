"""One batch in a program of its own, for what a Spark session does not survive. `python one_batch.py <entrypoint> <stream as JSON>`; prints JSON."""

from __future__ import annotations

import json
import sys
import tempfile

from conftest_spark import Epoch, configuration
from pipelines_of_tests import seen
from pyspark.sql import SparkSession

from sluice_consumer.config import StreamConfig
from sluice_consumer.spark import conf


def main(entrypoint: str, stream: str) -> None:
    """Runs the first batch of an epoch; prints what the pipeline saw, and whether nobody can still be at work afterwards."""
    config = configuration(StreamConfig(**json.loads(stream)), entrypoint)
    with tempfile.TemporaryDirectory() as directory:
        ours = {"spark.log.level": "OFF", "spark.local.dir": directory}
        spark = SparkSession.builder.config(map={**conf.settings(config, None), **ours}).getOrCreate()
        epoch = Epoch(spark, config)
        epoch.batch()
        sys.stdout.write(json.dumps({"seen": seen, "quiet": epoch.engine.quiet()}) + "\n")
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
