"""What a person sees of a driver that failed: the whole program, real Spark, emulated AWS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import boto3
import pytest
from conftest_spark import stream_document

from sluice_consumer.config import StreamConfig

pytestmark = [pytest.mark.spark, pytest.mark.slow]
HERE = Path(__file__).parent
SOURCE = HERE / "failing_pipelines.py"
NOISE = ("\tat ", "BrokenPipe", "log4j profile", "log level", "Driver stacktrace", "pyspark/", "Traceback")


@dataclass
class Said:
    """What a consumer that failed has left.

    Attributes:
        lines: of stderr, without the emulator's.
        termination: the message for Kubernetes.
    """

    lines: list[str]
    termination: dict[str, str]

    @property
    def last(self) -> list[str]:
        first = next(n for n, line in enumerate(self.lines) if "KeyError" in line)
        return self.lines[first:]


def failed(stream: StreamConfig, folder: Path, function: str) -> Said:
    document = {
        "name": "orders",
        "stream": stream_document(stream),
        "checkpoints": {"table": f"failing-{uuid4()}"},
        "pipeline": {"entrypoint": f"failing_pipelines:{function}"},
        "leaseDurationSeconds": 30,
    }
    path, words = folder / "consumer.json", folder / "last"
    path.write_text(json.dumps(document))
    command = [sys.executable, "-m", "sluice_consumer", "--config", str(path), "--master", "local[2]", "--until", "tip"]
    paths = os.pathsep.join([str(HERE.parents[2] / "consumer"), str(HERE)])
    environment = os.environ | {"PYTHONPATH": paths, "SLUICE_TERMINATION_LOG": str(words), "SLUICE_LOG": "text", "SLUICE_LOG_LEVEL": ""}
    ended = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert ended.returncode == 1, ended.stderr
    lines = ended.stderr.splitlines()
    asked = [line for line in lines if "falling back to JSON" in line]
    late = [line for line in lines if "it is tried again" in line]  # a check had no answer in its time: then each process finds it
    assert late or len(asked) == 1, "the check finds it, and Python workers are told"
    return Said([line for line in lines if line not in (*asked, *late)], json.loads(words.read_text()))


def place(function: str, text: str) -> str:
    number = next(n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)
    return f"{SOURCE}:{number} in {function}"


def test_a_driver_whose_function_raised_ends_with_the_exception_its_place_the_batch_and_its_only_record(aws: StreamConfig, tmp_path: Path) -> None:
    client = boto3.client("kinesis", endpoint_url=aws.kinesis_endpoint, region_name=aws.region)
    name = f"one-{uuid4()}"
    client.create_stream(StreamName=name, ShardCount=1)
    client.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    put = client.put_record(StreamName=name, Data=b"7", PartitionKey="k")
    said = failed(replace(aws, name=name), tmp_path, "in_driver")
    assert not [line for line in said.lines if any(noise in line for noise in NOISE)]
    assert said.last[0] == "KeyError: 'amount'"
    assert said.last[1].startswith(f"  at {place('_amount', 'return int(')}")
    text = " ".join(" ".join(said.last).split())
    assert f"at {place('in_driver', '_amount({')}" in text
    assert f"batch 1 of orders, stream {name}: 1 record of 1 shard ({put['ShardId']}) was read; it is not committed" in text
    assert f"record {put['SequenceNumber']} of {put['ShardId']}" in said.last
    assert said.last[-1] == "next: run it again; batch 1 comes again, with the same records"
    assert len(said.last) <= 10
    assert said.termination["reason"] == "KeyError"
    message = said.termination["message"]
    assert message.startswith(f"KeyError: 'amount' at {place('_amount', 'return int(')}; batch 1 of orders, stream {name}: ")
    assert message.endswith(f"record {put['SequenceNumber']} of {put['ShardId']}; {said.last[-1]}")


def test_a_driver_whose_task_raised_ends_with_the_users_own_exception_and_not_with_sparks(aws: StreamConfig, tmp_path: Path) -> None:
    """Spark repeats it in a line each time that it tells of the task; its Java stacks are nobody's."""
    said = failed(aws, tmp_path, "in_task")
    assert not [line for line in said.lines if any(noise in line for noise in NOISE)]
    own = said.last.index("KeyError: 'amount'")
    assert [line.split(" in ")[0].rpartition("/")[2].partition(":")[0] for line in said.last[own + 1 : own + 4]] == [SOURCE.name] * 3
    assert said.last[own + 1].startswith(f"  at {place('_amount', 'return int(')}")
    text = " ".join(" ".join(said.last[own:]).split())
    assert f"batch 1 of orders, stream {aws.name}: " in text
    assert " records of " in text
    assert said.last[-1] == "next: run it again; batch 1 comes again, with the same records"
    assert len(said.last) <= 25
    assert said.termination["reason"] == "KeyError"
    assert said.termination["message"].endswith(said.last[-1])
