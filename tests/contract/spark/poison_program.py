"""A stream with records that `process` cannot deal with, and the whole program that consumes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from conftest_spark import stream_document

from sluice_consumer.config import StreamConfig

SHARDS, ATTEMPTS = 8, 3
HERE = Path(__file__).parent
LEASE = 8  # seconds: each try after the first one waits for it, and a busy machine delays heartbeats
Put = Callable[[int, dict[int, list[int]]], StreamConfig]


def record(i: int, poison: dict[int, list[int]]) -> dict[str, Any]:
    """The i-th record of a stream: dealt to its shards in turn; some are poison: places within their shards, by shard."""
    shard, place = i % SHARDS, i // SHARDS
    data = f"poison {shard}/{place}" if place in poison.get(shard, ()) else str(i)
    return {"Data": data.encode(), "PartitionKey": "k", "ExplicitHashKey": str(shard * 2**128 // SHARDS + 1)}


@pytest.fixture
def stream(aws: StreamConfig) -> Put:
    def put(records: int, poison: dict[int, list[int]]) -> StreamConfig:
        client = boto3.client("kinesis", endpoint_url=aws.kinesis_endpoint, region_name=aws.region)
        name = f"poison-{uuid4()}"
        client.create_stream(StreamName=name, ShardCount=SHARDS)
        client.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
        for n in range(0, records, 500):
            client.put_records(StreamName=name, Records=[record(i, poison) for i in range(n, min(n + 500, records))])
        return StreamConfig(name, aws.region, aws.kinesis_endpoint, aws.dynamodb_endpoint)

    return put


@dataclass(frozen=True)
class Ended:
    returncode: int
    stderr: str
    seconds: float


def run(
    stream: StreamConfig,
    folder: Path,
    pipeline: str,
    *,
    batch: dict[str, Any] | None = None,
    args: dict[str, Any] | None = None,
    lease: int = LEASE,
    **on_error: Any,
) -> Ended:
    """Runs a consumer until the tip. `pipeline`: a function of `poison_pipelines`, or of a module that is named. `lease`: seconds."""
    (folder / "sink").mkdir(exist_ok=True)
    document = {
        "stream": stream_document(stream),
        "checkpoints": {"table": f"poison-{stream.name[-12:]}"},
        "pipeline": {
            "entrypoint": pipeline if ":" in pipeline else f"poison_pipelines:{pipeline}",
            "args": {"path": str(folder / "sink")} | (args or {}),
        },
        "batch": {"intervalSeconds": 0.2, "maxRecordsPerShard": 1000} | (batch or {}),
        "onError": {"attempts": ATTEMPTS, "deadLetter": {"path": (folder / "letters").as_uri()}} | on_error,
        "leaseDurationSeconds": lease,
    }
    path = folder / "consumer.json"
    path.write_text(json.dumps(document))
    command = [sys.executable, "-m", "sluice_consumer", "--config", str(path), "--master", "local[2]", "--until", "tip"]
    began = time.monotonic()
    ended = subprocess.run(command, env=environment(folder), stderr=subprocess.PIPE, text=True, timeout=560, check=False)
    return Ended(ended.returncode, ended.stderr, time.monotonic() - began)


def environment(folder: Path) -> dict[str, str]:
    python_path = os.pathsep.join([str(HERE.parents[2] / "consumer"), str(HERE)])
    return os.environ | {"PYTHONPATH": python_path, "SLUICE_TERMINATION_LOG": str(folder / "termination-log")}


def last_words(folder: Path) -> dict[str, str]:
    words: dict[str, str] = json.loads((folder / "termination-log").read_text())
    return words


def stored(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted((folder / "sink").glob("*.jsonl")):
        for line in file.read_text().splitlines():
            shard, _, _, data = json.loads(line)
            found[shard].append(data)
    return found


def letters(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted((folder / "letters").glob("*/*/*.json"))]
