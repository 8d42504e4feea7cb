"""The awslabs connector, from a jar that somebody has (`make bench PEER_JAR=…`): a streaming query of PySpark into nothing, at its best settings.

`python peer_connector.py '<run as JSON>'` prints a mark after each batch: records so far, moment, and CPU of the process tree.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

from process_tree import cpu_by_kind
from pyspark.sql import SparkSession

from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.spark import conf

LOOK_SECONDS = 0.05
FORMAT = "aws-kinesis"


@dataclass(frozen=True)
class ConnectorRun:
    """One run: to so many batches.

    `records`: a shard and batch; None: the connector's defaults. `late_compiler`: Java's, as a consumer has it. A start is cheaper with it, and
    long work is dearer.
    """

    jar: str
    kinesis: str
    records: int | None
    batches: int
    late_compiler: bool = False


def options(run: ConnectorRun) -> dict[str, str]:
    """Of the source. Else it rests for 200 ms between two calls, and at the end of a batch waits for 5 s with what does not fit into its queue."""
    needed = {
        "kinesis.region": "us-east-1",
        "kinesis.streamName": "bench",
        "kinesis.endpointUrl": run.kinesis,
        "kinesis.consumerType": "GetRecords",
        "kinesis.startingPosition": "TRIM_HORIZON",
    }
    if run.records is None:
        return needed
    return needed | {
        "kinesis.maxFetchRecordsPerShard": str(run.records),
        "kinesis.getRecords.fetchIntervalMs": "0",
        "kinesis.internal.dataQueueCapacity": str(2 * run.records),
        "kinesis.describeShardInterval": "60s",
        "kinesis.minBatchesToRetain": "10",
    }


def session(run: ConnectorRun) -> SparkSession:
    config = Config(StreamConfig("bench", "us-east-1"), CheckpointsConfig("bench"), PipelineConfig("a:b"), name="peer")
    java = conf.JVM if run.late_compiler else conf.NO_BOUNDS_CHECKS
    ours = {"spark.log.level": "ERROR", "spark.jars": run.jar, "spark.driver.defaultJavaOptions": java}
    settings: dict[str, Any] = conf.settings(config, None, "local[2]") | ours
    return SparkSession.builder.config(map=settings).getOrCreate()


def main() -> None:
    run = ConnectorRun(**json.loads(sys.argv[1]))
    spark = session(run)
    with tempfile.TemporaryDirectory(dir="/dev/shm", ignore_cleanup_errors=True) as place:  # the query writes while it stops
        source = spark.readStream.format(FORMAT).options(**options(run)).load()
        query = source.writeStream.format("noop").option("checkpointLocation", place).start()
        _marks(query, run.batches)
        query.stop()
    spark.stop()


def _marks(query: Any, batches: int) -> None:
    done, records = -1, 0
    while done + 1 < batches:
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
        progress = query.lastProgress
        if progress is not None and progress["batchId"] > done:
            done, records = progress["batchId"], records + progress["numInputRows"]
            print("MARK", json.dumps({"batch": done, "records": records, "at": time.monotonic()} | cpu_by_kind(os.getpid())), flush=True)  # noqa: T201
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()
