"""`make bench`: milliseconds of a batch from trigger to commit, at the tip of a stream of 4 shards, Spark local[2]; printed, never asserted.

Everything is real but AWS: kinesis-local and DynamoDB Local, the supervisor, the driver, the data source, bind, close and commit. The pipeline only
counts. A producer puts one record a shard and batch, so that each batch has something to read.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import boto3
from rich.console import Console
from rich.table import Table

from sluice_lab import emulators, places

BATCHES, WARM_UP, SHARDS = 60, 10, 4
LINE = re.compile(r"batch (\d+): (\d+) records of (\d+) shards in ([0-9.]+) s")
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_DEFAULT_REGION": "us-east-1"}


def count(batch: Any, info: Any) -> None:  # noqa: ARG001 - a pipeline's signature
    """The pipeline: one job, no output."""
    batch.write.format("noop").mode("overwrite").save()


def configuration(kinesis: str, dynamodb: str) -> dict[str, Any]:
    """The consumer's configuration."""
    return {
        "format": 1,
        "stream": {"name": "bench", "region": "us-east-1", "kinesisEndpoint": kinesis, "dynamodbEndpoint": dynamodb},
        "checkpoints": {"table": "bench"},
        "pipeline": {"entrypoint": "batch_overhead:count"},
        "batch": {"intervalSeconds": 0.5},
        "leaseDurationSeconds": 10,
    }


def feed(client: Any, stop: threading.Event) -> None:
    """Puts a record into every shard, over and over."""
    edges = [2**128 // SHARDS * i for i in range(SHARDS)]
    while not stop.wait(0.2):
        records = [{"Data": b"x" * 200, "PartitionKey": "k", "ExplicitHashKey": str(edge)} for edge in edges]
        client.put_records(StreamName="bench", Records=records)


def measure(config: Path) -> list[tuple[float, int]]:
    """Runs the consumer; seconds and records of each batch after the warm-up."""
    environment = os.environ | CREDENTIALS | {"SLUICE_LOG": "text", "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-m", "sluice_consumer", "--config", str(config), "--master", "local[2]"]
    found: list[tuple[float, int]] = []
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if match := LINE.search(line):
                found.append((float(match[4]), int(match[2])))
                if len(found) == WARM_UP + BATCHES:
                    process.terminate()
    return found[WARM_UP:]


def main() -> None:
    """Measures and prints."""
    os.environ.update(CREDENTIALS)
    work = places.work()
    with emulators.dynamodb_local(work) as dynamodb, emulators.kinesis_local(work) as kinesis:
        client = boto3.client("kinesis", endpoint_url=kinesis)
        client.create_stream(StreamName="bench", ShardCount=SHARDS)
        while client.describe_stream_summary(StreamName="bench")["StreamDescriptionSummary"]["StreamStatus"] != "ACTIVE":
            time.sleep(0.1)
        config = work / "bench.json"
        config.write_text(json.dumps(configuration(kinesis, dynamodb)))
        stop = threading.Event()
        threading.Thread(target=feed, args=(client, stop), daemon=True).start()
        batches = measure(config)
        stop.set()
    seconds = [s * 1000 for s, _ in batches]
    table = Table(title=f"Batch overhead: {SHARDS} shards at the tip, local[2], {len(batches)} batches")
    for head in ("median ms", "p90 ms", "min ms", "max ms", "records a batch"):
        table.add_column(head, justify="right")
    p90 = statistics.quantiles(seconds, n=10)[8]
    row = (statistics.median(seconds), p90, min(seconds), max(seconds), statistics.mean(r for _, r in batches))
    table.add_row(*(f"{value:.0f}" for value in row))
    Console().print(table)


if __name__ == "__main__":
    main()
