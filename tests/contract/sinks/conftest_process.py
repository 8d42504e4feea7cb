"""`python -m sluice_consumer` with a sink, over emulated Kinesis and DynamoDB: run, and looked at from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from conftest_sinks import document

from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_consumer import config as configs
from sluice_consumer.process import wiring

ROOT = Path(__file__).parents[3]
REGION, SHARDS = "us-east-1", 2
LONG_SECONDS = 300.0  # no process of these tests needs as long, unless it hangs


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        code: its exit code; a signal's number, negative.
        said: the lines of its last words, without the log.
        told: its termination message.
    """

    code: int
    said: list[str]
    told: dict[str, str]


@dataclass(frozen=True)
class ConsumerProcess:
    """A consumer of its own.

    Attributes:
        written: its configuration (docs/interfaces.md).
    """

    folder: Path
    written: dict[str, Any] = field(default_factory=dict)

    def run(self, seconds: float = LONG_SECONDS) -> Ended:
        path, last = self.folder / "consumer.json", self.folder / "last"
        path.write_text(json.dumps(self.written))
        last.unlink(missing_ok=True)
        command = [sys.executable, "-m", "sluice_consumer", "--config", str(path), "--master", "local[1]", "--until", "tip"]
        paths = os.pathsep.join([str(ROOT / "consumer"), str(Path(__file__).parent)])
        environment = os.environ | {"PYTHONPATH": paths, "SLUICE_TERMINATION_LOG": str(last), "SLUICE_LOG": "json", "AWS_DEFAULT_REGION": REGION}
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=seconds, check=False)
        (self.folder / "stderr").write_text(done.stderr)
        told = json.loads(last.read_text()) if last.exists() else {}
        return Ended(done.returncode, last_words(done.stderr), told)

    def row(self) -> ConsumerRow:
        row = wiring.store(configs.parse(json.dumps(self.written))).consumer()
        assert row is not None
        return row


def last_words(stderr: str) -> list[str]:
    lines = stderr.splitlines()
    logged = [number for number, line in enumerate(lines) if line.startswith('{"time"')]
    return lines[logged[-1] + 1 :] if logged else lines


Consuming = Callable[..., ConsumerProcess]


@pytest.fixture
def consuming(credentials: None, kinesis_local_endpoint: str, dynamodb_endpoint: str, tmp_path: Path) -> Consuming:
    """Makes a stream of numbered documents, and a consumer of it. `lease`, in seconds: short where a killed process leaves it to the next one."""
    assert credentials is None

    def make(
        numbers: range, entrypoint: str, args: Mapping[str, Any], spark_conf: Mapping[str, str], *, lease: int = 20, **batch: Any
    ) -> ConsumerProcess:
        client = boto3.client("kinesis", endpoint_url=kinesis_local_endpoint, region_name=REGION)
        name = f"sinks-{uuid4()}"
        client.create_stream(StreamName=name, ShardCount=SHARDS)
        client.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
        records = [{"Data": document(n), "PartitionKey": "k", "ExplicitHashKey": str(n % SHARDS * 2**127)} for n in numbers]
        for first in range(0, len(records), 500):
            client.put_records(StreamName=name, Records=records[first : first + 500])
        written = {
            "stream": {"name": name, "region": REGION, "kinesisEndpoint": kinesis_local_endpoint, "dynamodbEndpoint": dynamodb_endpoint},
            "checkpoints": {"table": f"sinks-{uuid4()}"},
            "pipeline": {"entrypoint": entrypoint, "args": dict(args)},
            "batch": {"intervalSeconds": 0.05, **batch},
            "leaseDurationSeconds": lease,
            "sparkConf": dict(spark_conf),
        }
        return ConsumerProcess(tmp_path, written)

    return make
