"""Catching up: records a second, and CPU seconds a million records, with everything that a batch has; beside its peers in the same run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from canned import Options
from consumer_run import CREDENTIALS, HERE, Plan, kinesis, run
from peers import PeerRun
from slab import CBOR, JSON, Shape

from sluice_lab import places, spark_lines

SHARDS, RECORDS = 4, 50_000  # a batch
WARM_UP, BATCHES = 30, 20  # Java compiles for half a minute; before, that is half of what is measured
START_MILLIS = int(time.time() * 1000) - 3_600_000  # arrival: older than retention, and every range would be suspected of loss


@dataclass(frozen=True)
class Speed:
    """What a run came to, per million records: CPU seconds of the whole process tree but the servers, and seconds on two cores."""

    cpu: float
    wall: float


def speeds(size: int, dynamodb: str) -> dict[str, Speed]:
    """Every contestant, one after the other, over records of a mean size."""
    found = {"rows made of nothing": peer("nothing", "", size)}
    for name, codec in (("sluice, CBOR", CBOR), ("sluice, JSON", JSON)):
        with kinesis(Options(SHARDS, Shape(RECORDS * (WARM_UP + BATCHES + 2), size, START_MILLIS), (codec,))) as endpoint:
            found[name] = consumer(endpoint, dynamodb)
    with kinesis(Options(SHARDS, Shape(RECORDS * 4, size, START_MILLIS), (JSON,))) as endpoint:
        found["boto3 to tuples"] = peer("boto3", endpoint, size, 4)
    return found


def on_line(line: str, size: int, dynamodb: str) -> tuple[Speed, Speed]:
    """Rows made of nothing, and the consumer with JSON, on a line of Spark."""
    python = str(spark_lines.python(line))
    with kinesis(Options(SHARDS, Shape(RECORDS * (WARM_UP + BATCHES + 2), size, START_MILLIS), (JSON,))) as endpoint:
        return peer("nothing", "", size, python=python), consumer(endpoint, dynamodb, python)


def consumer(endpoint: str, dynamodb: str, python: str = sys.executable) -> Speed:
    """The whole consumer: plan, fetch, bind, process, close, commit."""
    batch = {"intervalSeconds": 0, "maxRecordsPerShard": RECORDS, "maxBytesPerShard": 2**31}
    made = Plan(endpoint, dynamodb, "noop", batch, WARM_UP + BATCHES + 1, 600.0, path=str(HERE / "unpaced"))
    marks = run(made, python, {"PYTHONPATH": os.pathsep.join(str(places.REPO / part) for part in ("consumer", "lab"))}).marks
    return speed([mark for mark in marks if WARM_UP <= mark["batch"] <= WARM_UP + BATCHES])


def peer(name: str, endpoint: str, size: int, batches: int = WARM_UP + BATCHES, python: str = sys.executable) -> Speed:
    """One of `peers`."""
    asked = PeerRun(name, endpoint, SHARDS, RECORDS, size, batches)
    environment = os.environ | CREDENTIALS | {"PYTHONPATH": str(HERE)}
    command = [python, str(HERE / "peers.py"), json.dumps(asdict(asked))]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    marks = [json.loads(line.removeprefix("MARK ")) for line in said.splitlines() if line.startswith("MARK ")]
    return speed(marks[-1 - min(BATCHES, batches // 2) :])


def speed(marks: list[dict[str, Any]]) -> Speed:
    """From the first of the marks to the last."""
    first, last = marks[0], marks[-1]
    millions = (last["batch"] - first["batch"]) * SHARDS * RECORDS / 1e6
    return Speed((last["cpu"] - first["cpu"]) / millions, (last["at"] - first["at"]) / millions)
