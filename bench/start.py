"""A cold start: from the program's start to the first 100,000 records behind it, by the clock and in CPU, beside the connector."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catch_up
from canned import Options
from consumer_run import CREDENTIALS, HERE, LINE, UNPACED, Plan, kinesis, python_path
from process_tree import cpu_by_kind
from slab import CBOR, JSON, Shape
from start_timeline import Timeline

from sluice_lab import spark_lines

SHARDS, RECORDS, SIZE = 4, 25_000, 1000
EMBEDDED, DEFAULT_COMPILER = "sluice, in a session at Spark's defaults", "awslabs connector, Java's compiler as by default"
WHOLE = ("-m", "sluice_consumer", "--master", "local[2]", "--config")

Figures = dict[str, float]


def rounds(dynamodb: str, count: int, jar: Path | None) -> dict[str, list[Figures]]:
    peers = (catch_up.CONNECTOR, DEFAULT_COMPILER) if jar else ()
    found: dict[str, list[Figures]] = {name: [] for name in (catch_up.SLUICE, EMBEDDED, *peers)}
    with kinesis(Options(SHARDS, Shape(RECORDS * 4, SIZE, catch_up.START_MILLIS), (JSON, CBOR))) as endpoint:
        for _ in range(count):
            found[catch_up.SLUICE].append(consumer(endpoint, dynamodb, WHOLE))
            found[EMBEDDED].append(consumer(endpoint, dynamodb, (str(HERE / "embedded_run.py"),)))
            if jar is not None:
                found[catch_up.CONNECTOR].append(connector(endpoint, jar, late_compiler=True))
                found[DEFAULT_COMPILER].append(connector(endpoint, jar, late_compiler=False))
    return found


def timeline(dynamodb: str) -> list[tuple[str, float, float | None]]:
    """One more start, looked at all the time, which costs some."""
    with kinesis(Options(SHARDS, Shape(RECORDS * 4, SIZE, catch_up.START_MILLIS), (JSON, CBOR))) as endpoint:
        found: list[Timeline] = []
        consumer(endpoint, dynamodb, WHOLE, found)
    return list(found[0].rows())


def consumer(endpoint: str, dynamodb: str, command: tuple[str, ...], watched: list[Timeline] | None = None) -> Figures:
    """A consumer, until it says that its first batch is committed. `command`: without the file of its configuration, which comes last."""
    batch = {"intervalSeconds": 0, "maxRecordsPerShard": RECORDS, "maxBytesPerShard": 2**31}
    plan = Plan(endpoint, dynamodb, "nothing_more", batch, 1)
    with tempfile.TemporaryDirectory() as work:
        file = Path(work, "config.json")
        file.write_text(json.dumps(plan.configuration()))
        return timed([*command, str(file)], lambda line: LINE.search(line) is not None, UNPACED, watched)


def connector(endpoint: str, jar: Path, *, late_compiler: bool) -> Figures:
    asked: dict[str, Any] = {"jar": str(jar), "kinesis": endpoint, "records": RECORDS, "batches": 1, "late_compiler": late_compiler}
    return timed([str(HERE / "peer_connector.py"), json.dumps(asked)], lambda line: line.startswith("MARK "))


def timed(command: list[str], done: Callable[[str], bool], path: str = "", watched: list[Timeline] | None = None) -> Figures:
    """Seconds by the clock, and CPU-seconds by kind of process, from the start of a program to the line that says it is done."""
    environment = os.environ | CREDENTIALS | {"SLUICE_LOG": "text", "PYTHONPATH": python_path(path)}
    program = [str(spark_lines.python(catch_up.LINE)), *command]
    begun = time.monotonic()
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said, watch = [], Timeline(process.pid, begun)
        if watched is not None:
            watched.append(watch)
            threading.Thread(target=watch.watch, daemon=True).start()
        for line in process.stdout:
            said.append(line)
            watch.hear(line)
            if done(line):
                used = {"wall": time.monotonic() - begun} | cpu_by_kind(process.pid)
                watch.over.set()
                process.terminate()
                return used
    raise SystemExit("it ended early:\n" + "".join(said[-30:]))
