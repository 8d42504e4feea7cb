"""Catching up: records a second, and CPU seconds a million records, with everything that a batch has; beside its peers in the same run."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from canned import Options
from consumer_run import CREDENTIALS, HERE, UNPACED, Plan, kinesis, python_path, run
from peers import PeerRun
from slab import CBOR, JSON, Shape

from sluice_consumer.kinesis.codec import ENCODING
from sluice_lab import spark_lines

LINE = spark_lines.image_line()
FLOOR, SLUICE, CONNECTOR, SLUICE_JSON, BOTO = "floor", "sluice, CBOR", "awslabs connector", "sluice, JSON", "boto3 to tuples"
SHARDS, RECORDS = 4, 50_000  # a batch
BACKLOG = 400_000_000  # bytes of a shard that nobody set anything for: more than is read
WARM_UP, BATCHES = 30, 15  # Java compiles for half a minute; before, that is half of what is measured
BOTO_BATCHES = 4
START_MILLIS = int(time.time() * 1000) - 3_600_000  # arrival: older than retention, and every range would be suspected of loss

Figures = dict[str, float]


@dataclass(frozen=True)
class Speed:
    """What a run came to, per million records: CPU seconds of the whole process tree but the servers, and seconds on two cores."""

    cpu: float
    wall: float


@contextlib.contextmanager
def stream(size: int, records: int = RECORDS * (WARM_UP + BATCHES + 2)) -> Iterator[str]:
    with kinesis(Options(SHARDS, Shape(records, size, START_MILLIS), (JSON, CBOR))) as endpoint:
        yield endpoint


def rounds(size: int, dynamodb: str, count: int, jar: Path | None) -> dict[str, list[Figures]]:
    """Every contestant over records of a mean size: those who are compared closely in each of so many rounds, the others once."""
    with stream(size) as endpoint:
        close: dict[str, Callable[[], Speed]] = {
            FLOOR: partial(peer, "nothing", "", size),
            SLUICE: partial(consumer, endpoint, dynamodb),
        }
        if jar is not None:
            close[CONNECTOR] = partial(connector, endpoint, jar)
        found: dict[str, list[Figures]] = {name: [] for name in (*close, SLUICE_JSON, BOTO)}
        for _ in range(count):
            for name, measure in close.items():
                found[name].append(asdict(measure()))
        found[SLUICE_JSON].append(asdict(consumer(endpoint, dynamodb, more={ENCODING: "json"})))
        found[BOTO].append(asdict(peer("boto3", endpoint, size, BOTO_BATCHES)))
    return found


def on_lines(lines: Sequence[str], size: int, dynamodb: str) -> dict[str, dict[str, Figures]]:
    with stream(size) as endpoint:
        return {line: {FLOOR: asdict(peer("nothing", "", size, line=line)), SLUICE: asdict(consumer(endpoint, dynamodb, line))} for line in lines}


def consumer(endpoint: str, dynamodb: str, line: str = LINE, more: Mapping[str, str] | None = None) -> Speed:
    batch = {"intervalSeconds": 0, "maxRecordsPerShard": RECORDS, "maxBytesPerShard": 2**31}
    marks = run(Plan(endpoint, dynamodb, "noop", batch, WARM_UP + BATCHES + 1, 600.0, path=UNPACED, line=line, more=dict(more or {}))).marks
    return speed([mark for mark in marks if WARM_UP <= mark["batch"] <= WARM_UP + BATCHES])


def by_defaults(size: int, dynamodb: str, jar: Path | None) -> dict[str, float]:
    """Megabytes a second and shard of a backlog, where a shard keeps to its limits and nobody set anything."""
    options = Options(SHARDS, Shape(BACKLOG // size, size, START_MILLIS), (JSON, CBOR), limits=True)
    with kinesis(options) as endpoint:
        found = run(Plan(endpoint, dynamodb, "noop", {}, 16, 300.0))
        first, last = found.marks[0], found.marks[-1]
        records = sum(batch.records for batch in found.batches if first["batch"] < batch.number <= last["batch"])
        rates = {SLUICE: records / (last["at"] - first["at"])}
    if jar is not None:
        with kinesis(options) as endpoint:
            marks = marked("peer_connector.py", {"jar": str(jar), "kinesis": endpoint, "records": None, "batches": 3})
            first, last = marks[0], marks[-1]
            rates[CONNECTOR] = (last["records"] - first["records"]) / (last["at"] - first["at"])
    return {name: rate * size / SHARDS / 1e6 for name, rate in rates.items()}


def peer(name: str, endpoint: str, size: int, batches: int = WARM_UP + BATCHES, line: str = LINE) -> Speed:
    marks = marked("peers.py", asdict(PeerRun(name, endpoint, SHARDS, RECORDS, size, batches)), line)
    return speed(marks[-1 - min(BATCHES, batches // 2) :])


def connector(endpoint: str, jar: Path) -> Speed:
    """The awslabs connector; its batches may differ in size."""
    marks = marked("peer_connector.py", {"jar": str(jar), "kinesis": endpoint, "records": RECORDS, "batches": WARM_UP + BATCHES})
    first, last = marks[-1 - BATCHES], marks[-1]
    millions = (last["records"] - first["records"]) / 1e6
    return Speed((last["cpu"] - first["cpu"]) / millions, (last["at"] - first["at"]) / millions)


def marked(program: str, asked: Mapping[str, Any], line: str = LINE) -> list[dict[str, Any]]:
    command = [str(spark_lines.python(line)), str(HERE / program), json.dumps(asked)]
    environment = os.environ | CREDENTIALS | {"PYTHONPATH": python_path()}
    said = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(each.removeprefix("MARK ")) for each in said.splitlines() if each.startswith("MARK ")]


def speed(marks: Sequence[Mapping[str, Any]]) -> Speed:
    first, last = marks[0], marks[-1]
    millions = (last["batch"] - first["batch"]) * SHARDS * RECORDS / 1e6
    return Speed((last["cpu"] - first["cpu"]) / millions, (last["at"] - first["at"]) / millions)
