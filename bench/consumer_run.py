"""Runs the whole consumer, supervisor and all, against a canned Kinesis and DynamoDB Local."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from canned import Options
from process_tree import cpu_seconds

from sluice_lab import places, spark_lines

HERE = Path(__file__).parent
UNPACED = str(HERE / "unpaced")  # a path on which the client keeps to none of the limits of a shard
LINE = re.compile(r"batch (\d+): (\d+) records? of (\d+) shards? in ([0-9.]+) s, (\d+) ms behind")
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_DEFAULT_REGION": "us-east-1"}


@contextlib.contextmanager
def kinesis(options: Options) -> Iterator[str]:
    command = [sys.executable, str(HERE / "canned.py"), json.dumps(asdict(options))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


def asked(endpoint: str) -> dict[str, int]:
    with urllib.request.urlopen(endpoint) as reply:  # noqa: S310 - our own server
        counts: dict[str, int] = json.load(reply)
    return counts


@dataclass(frozen=True)
class Plan:
    """One run of the consumer.

    Attributes:
        batches: the run ends after so many.
        seconds: or after so long.
        path: put in front of PYTHONPATH.
        line: of Spark; that of the image.
        image: the tag of a consumer's image, which runs in a container then; `line` is its own.
        more: in its environment.
        args: of the pipeline.
        stream: more settings of the stream.
    """

    kinesis: str
    dynamodb: str
    pipeline: str
    batch: dict[str, Any]
    batches: int
    seconds: float = 120.0
    spark: dict[str, str] = field(default_factory=dict)
    path: str = ""
    line: str = field(default_factory=spark_lines.image_line)
    more: dict[str, str] = field(default_factory=dict)
    args: dict[str, Any] = field(default_factory=dict)
    stream: dict[str, Any] = field(default_factory=dict)
    image: str = ""

    def configuration(self) -> dict[str, Any]:
        return {
            "format": 1,
            "stream": {"name": "bench", "region": "us-east-1", "kinesisEndpoint": self.kinesis, "dynamodbEndpoint": self.dynamodb} | self.stream,
            "checkpoints": {"table": f"bench-{uuid4()}"},
            "pipeline": {"entrypoint": f"bench_pipelines:{self.pipeline}", "args": self.args},
            "batch": self.batch,
            "sparkConf": self.spark,
            "leaseDurationSeconds": 10,
        }


@dataclass(frozen=True)
class Batch:
    """A batch as the consumer's log tells it; seconds from trigger to commit; and the CPU seconds that the services had used by then."""

    number: int
    records: int
    seconds: float
    behind_millis: int
    services: float


@dataclass(frozen=True)
class Run:
    batches: tuple[Batch, ...]
    marks: tuple[dict[str, Any], ...]


def run(plan: Plan) -> Run:
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        (folder / "config.json").write_text(json.dumps(plan.configuration()))
        marks = folder / "marks"
        marks.touch()
        batches = tuple(_batches(plan, folder))
        return Run(batches, tuple(map(json.loads, marks.read_text().splitlines())))


@contextlib.contextmanager
def _ended_after(process: subprocess.Popen[str], seconds: float) -> Iterator[None]:
    """Ends a process that takes too long; what it had done counts."""
    timer = threading.Timer(seconds, process.terminate)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def python_path(*first: str) -> str:
    """PYTHONPATH of what is measured: the environment of another line of Spark finds Sluice there, too."""
    return os.pathsep.join(filter(None, (*first, str(HERE), *(str(places.REPO / part) for part in ("consumer", "lab")))))


def _here(plan: Plan, folder: Path, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """A command and its environment: the consumer as `sluice run` has it."""
    command = [str(spark_lines.python(plan.line)), "-m", *_consumer(folder)]
    return command, os.environ | environment | {"PYTHONPATH": python_path(plan.path)}


def _in_container(plan: Plan, folder: Path, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The same in the image: its Python, its Spark, its archive of Java's classes and its copy of Sluice."""
    for path in (folder, folder / "marks"):
        path.chmod(0o777)  # the image's user is another one
    shown = environment | {"PYTHONPATH": os.pathsep.join(filter(None, (plan.path, str(HERE), "/opt/sluice/app")))}
    mounts = (f"--volume={HERE}:{HERE}:ro", f"--volume={folder}:{folder}")
    named = [f"--env={name}={value}" for name, value in shown.items()]
    return ["docker", "run", "--rm", "--network=host", *mounts, *named, "--entrypoint=python", plan.image, "-m", *_consumer(folder)], dict(os.environ)


def _consumer(folder: Path) -> tuple[str, ...]:
    return ("sluice_consumer", "--config", str(folder / "config.json"), "--master", "local[2]")


def _batches(plan: Plan, folder: Path) -> Iterator[Batch]:
    environment = CREDENTIALS | plan.more | {"SLUICE_LOG": "text", "BENCH_MARKS": str(folder / "marks")}
    command, environment = _in_container(plan, folder, environment) if plan.image else _here(plan, folder, environment)
    said: list[str] = []
    found = 0
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process, _ended_after(process, plan.seconds):
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if match := LINE.search(line):
                found += 1
                services = cpu_seconds(os.getpid(), without=process.pid)
                yield Batch(int(match[1]), int(match[2]), float(match[4]), int(match[5]), services)
            if match and found == plan.batches:
                process.terminate()
    if found < min(plan.batches, 1):
        raise SystemExit("the consumer ended early:\n" + "".join(said[-30:]))
