"""Who is compared: `sluice run`, and a plain worker of the real KCL. Each notes what it is handed in a file of its own, a line a unit."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from compare_log import Unit, parsed
from consumer_run import CREDENTIALS, HERE, python_path

from sluice_lab import places, spark_lines
from sluice_lab.machine import kcl_jars, processes
from sluice_lab.machine.processes import Program, Running

SLUICE, KCL = "sluice", "kcl"
LOOK_SECONDS = 0.25
SPARK_LINE = spark_lines.image_line()


@dataclass(frozen=True)
class Services:
    kinesis: str
    dynamodb: str
    stream: str


class Notes:
    def __init__(self, run: int, path: Path) -> None:
        self.path, self.units = path, list[Unit]()
        self._run, self._at = run, 0
        path.touch()

    def read(self) -> list[Unit]:
        """All units so far. A line that is not whole was not written."""
        with self.path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        self.units += parsed(self._run, whole.decode())
        return self.units


@dataclass
class Side:
    """A consumer of a stream: its programs one after the other, and what they noted.

    Attributes:
        command: of a program, from its notes and whether it is to be quick.
    """

    name: str
    command: Callable[[Side, Path, bool], tuple[str, ...]]
    services: Services
    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    identity: str = field(default_factory=lambda: f"compare-{uuid4()}")
    notes: list[Notes] = field(default_factory=list)
    running: Running | None = None

    @property
    def hold(self) -> Path:
        """While this file exists no unit ends."""
        return self.folder / "hold"

    def start(self, *, quick: bool = False) -> Running:
        """Starts a program, on the checkpoints of the one before."""
        self.folder.mkdir(exist_ok=True)
        notes = Notes(len(self.notes), self.folder / f"notes-{len(self.notes)}")
        self.notes.append(notes)
        where = {"KINESIS": self.services.kinesis, "DYNAMODB": self.services.dynamodb, "SLUICE_LOG": "text", "PYTHONPATH": python_path()}
        self.running = processes.start(
            self.folder, Program(f"{self.name}-{len(self.notes)}", self.command(self, notes.path, quick), CREDENTIALS | where)
        )
        return self.running

    def units(self) -> list[Unit]:
        return [unit for notes in self.notes for unit in notes.read()]

    def wait(self, done: Callable[[], bool], seconds: float, what: str) -> None:
        """Waits for something that it is to do.

        Raises:
            SystemExit: it ended, or did not do it in time; with the end of its log.
        """
        assert self.running is not None
        deadline = time.monotonic() + seconds
        while not done():
            if not self.running.alive() or time.monotonic() > deadline:
                log = processes.tail(self.running.log.read_text(errors="replace"), 30)
                raise SystemExit(f"{self.name}: {what}: not within {seconds:.0f} s, or it ended:\n{log}")
            time.sleep(LOOK_SECONDS)

    def kill(self) -> float:
        """Kills all of a program at once; returns when, epoch seconds."""
        assert self.running is not None
        at = time.time()
        processes.kill_tree(self.running)
        return at

    def stop(self) -> None:
        if self.running is not None:
            self.running.stop()


def sluice(side: Side, notes: Path, quick: bool) -> tuple[str, ...]:  # noqa: FBT001 - see `Side`
    """`sluice run`, which is `python -m sluice_consumer`, on the image's line of Spark."""
    services = side.services
    config = {
        "format": 1,
        "stream": {"name": services.stream, "region": "us-east-1", "kinesisEndpoint": services.kinesis, "dynamodbEndpoint": services.dynamodb},
        "checkpoints": {"table": side.identity},
        "pipeline": {"entrypoint": "bench_pipelines:noted", "args": {"notes": str(notes), "hold": str(side.hold)}},
        "batch": side.settings if quick else {},
    }
    file = notes.with_suffix(".json")
    file.write_text(json.dumps(config))
    return (str(spark_lines.python(SPARK_LINE)), "-m", "sluice_consumer", "--config", str(file), "--master", "local[2]")


def kcl(side: Side, notes: Path, quick: bool) -> tuple[str, ...]:  # noqa: FBT001 - see `Side`
    path = f"{kcl_jars.fetched()}/*:{classes()}"
    quicker = [str(millis) for millis in side.settings.values()] if quick else []
    return ("java", "-cp", path, "KclWorker", side.services.stream, side.identity, str(notes), str(side.hold), *quicker)


def classes() -> Path:
    source = HERE.parent / "tests" / "contract" / "kcl" / "KclWorker.java"
    home = places.work() / "jars" / "kcl-worker"
    with places.lock(home.with_suffix(".lock")):
        if not (home / source.name).exists() or (home / source.name).read_text() != source.read_text():
            shutil.rmtree(home, ignore_errors=True)
            processes.run("javac", "-cp", f"{kcl_jars.fetched()}/*", "-d", str(places.made(home)), str(source))
            shutil.copy(source, home)
    return home


COMMANDS: dict[str, Callable[[Side, Path, bool], tuple[str, ...]]] = {SLUICE: sluice, KCL: kcl}


def made(name: str, services: Services, folder: Path, settings: dict[str, Any]) -> Side:
    """One of the two; `settings` are those of its quick programs."""
    return Side(name, COMMANDS[name], services, folder / name, settings)
