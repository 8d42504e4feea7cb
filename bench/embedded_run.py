"""A consumer in a session that a program made for itself, at Spark's defaults: `python embedded_run.py CONFIG` ends after its first batch."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from sluice_consumer import embedded


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    drain = threading.Event()

    def tell(line: str) -> None:
        print(line, flush=True)  # noqa: T201 - the bench reads it
        if "batch 1:" in line:
            drain.set()

    embedded.run(spark, Path(sys.argv[1]).read_text(), drain=drain, tell=tell)
    spark.stop()


if __name__ == "__main__":
    main()
