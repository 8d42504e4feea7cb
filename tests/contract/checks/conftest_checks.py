"""A consumer's configuration over emulated AWS, and what its checks find."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import page_blocks
import pytest

from sluice_consumer.checks import run
from sluice_consumer.checks.model import CheckFinding, CheckOutcome, StartFacts

REGION, SHARDS = "us-east-1", 2
LONG = 60.0  # seconds; no check of a service that answers needs as long
ROOT = Path(__file__).parents[3]


@dataclass
class Checked:
    """A consumer that may be checked.

    Attributes:
        written: its configuration (docs/interfaces.md).
        environment: beside this process's own.
    """

    folder: Path
    written: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        path = self.folder / "consumer.json"
        path.write_text(json.dumps(self.written))
        return path

    def facts(self, seconds: float = LONG) -> StartFacts:
        return StartFacts(self.path, seconds, os.environ | self.environment)

    def results(self, seconds: float = LONG) -> dict[str, CheckFinding]:
        return {result.name: result.finding for result in run.results(self.facts(seconds))}

    def stopped(self, seconds: float = LONG) -> tuple[str, CheckOutcome, str]:
        """The check that stopped the rest: its name, its outcome and its words. All before it were well."""
        results = self.results(seconds)
        name = next(name for name, finding in results.items() if finding.outcome.stops)
        assert all(results[each].outcome is CheckOutcome.OK for each in list(results)[: list(results).index(name)]), results
        return name, results[name].outcome, results[name].message

    def program(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run(sys.executable, "-m", "sluice_consumer", "--config", str(self.path), *arguments)

    def typed(self, line: str) -> subprocess.CompletedProcess[str]:
        assert self.path.name in line
        return self._run("sh", "-euc", line)

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        ours = os.pathsep.join([str(ROOT / "consumer"), str(ROOT / "operator")])
        environment = os.environ | {"PYTHONPATH": ours, "PATH": page_blocks.path_with_sluice(self.folder), "SLUICE_LOG": "text"}
        environment |= {"SLUICE_TERMINATION_LOG": str(self.folder / "last")} | self.environment
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False)

    @property
    def last_words(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.folder / "last").read_text())
        return found


def made(folder: Path, kinesis: str, dynamodb: str) -> Checked:
    client = boto3.client("kinesis", endpoint_url=kinesis, region_name=REGION)
    name = f"checks-{uuid4()}"
    client.create_stream(StreamName=name, ShardCount=SHARDS)
    client.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    client.put_record(StreamName=name, Data=b"1", PartitionKey="k")
    (folder / "user_pipeline.py").write_text("def process(batch, info): ...\n")
    written = {
        "stream": {"name": name, "region": REGION, "kinesisEndpoint": kinesis, "dynamodbEndpoint": dynamodb},
        "checkpoints": {"table": f"checks-{uuid4()}"},
        "pipeline": {"entrypoint": "sluice_consumer.pipelines:console"},
        "leaseDurationSeconds": 20,
    }
    return Checked(folder, written)


@pytest.fixture
def consumer(kinesis_local_endpoint: str, dynamodb_endpoint: str, tmp_path: Path) -> Checked:
    """Over the emulators that are closest to AWS."""
    return made(tmp_path, kinesis_local_endpoint, dynamodb_endpoint)


@pytest.fixture
def on_moto(moto_endpoint: str, tmp_path: Path) -> Checked:
    """Over moto's server, which does not speak CBOR."""
    return made(tmp_path, moto_endpoint, moto_endpoint)


@pytest.fixture
def tables(consumer: Checked) -> Callable[[], set[str]]:
    client = boto3.client("dynamodb", endpoint_url=consumer.written["stream"]["dynamodbEndpoint"], region_name=REGION)
    return lambda: {name for page in client.get_paginator("list_tables").paginate() for name in page["TableNames"]}


def row_of(store: Any) -> dict[str, Any]:
    return dataclasses.asdict(store.consumer())
