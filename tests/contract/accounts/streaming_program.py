"""A streaming query over the stream of a configuration: `python streaming_program.py <folder>`.

The folder has `consumer.json`, and gets Spark's checkpoint, a line in `seen` for each batch, and in `last` the error that ended the query.
SIGTERM stops it.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import SluiceError
from sluice_consumer import config as configs
from sluice_consumer import streaming
from sluice_consumer.spark import conf


def main(folder: Path, stop: threading.Event) -> None:
    config = configs.parse((folder / "consumer.json").read_text())
    spark = SparkSession.builder.config(map=dict[str, Any](conf.settings(config, None, "local[2]"))).getOrCreate()

    def keep(batch: DataFrame, number: int) -> None:
        rows = sorted(int(row.data) for row in batch.select("data").collect())
        with (folder / "seen").open("a") as seen:
            seen.write(f"{number} {rows}\n")

    with streaming.source(spark, config) as source:
        writer = source.load().writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / "checkpoint"))
        query = source.start(writer.trigger(processingTime="100 milliseconds"))
        while not stop.is_set() and not query.awaitTermination(1):
            pass


if __name__ == "__main__":
    of_folder, told = Path(sys.argv[1]), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    try:
        main(of_folder, told)
    except SluiceError as error:
        (of_folder / "last").write_text(json.dumps({"reason": type(error).__name__, "message": str(error)}))
        sys.exit(error.exit_code)
