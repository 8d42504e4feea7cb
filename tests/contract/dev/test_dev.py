"""`python -m sluice_consumer dev`, started as a person starts it."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

CONSUMER = Path(__file__).parents[3] / "consumer"
PIPELINE = """
import helper


def process(batch, info):
    for row in batch.collect():
        print(helper.WORD, info.args["who"], bytes(row.data).decode(), flush=True)
"""
IN_TASKS = """
import helper


def process(batch, info):
    def told(rows):
        return [helper.WORD + " " + bytes(row.data).decode() for row in rows]

    for text in batch.rdd.mapPartitions(told).collect():
        print(text, flush=True)
"""
RAISES = """
def process(batch, info):
    if batch.collect():
        raise KeyError("amount")
"""
PATIENCE = 400  # seconds until a run that hangs is ended
pytestmark = [pytest.mark.spark, pytest.mark.skipif(importlib.util.find_spec("moto") is None, reason="not run: the extra `local` is not installed")]


class Dev:
    def __init__(self, folder: Path, *arguments: str) -> None:
        self.mark, self.said = f"DEV_OF_A_TEST={uuid4()}", list[str]()
        name, value = self.mark.split("=")
        environment = os.environ | {name: value, "PYTHONPATH": str(CONSUMER), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "sluice_consumer", "dev", *arguments]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        self._guard = threading.Timer(PATIENCE, self.process.kill)
        self._guard.start()

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def until(self, wanted: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.decode())
            if re.search(wanted, self.said[-1]):
                return self.said[-1]
        raise AssertionError(f"no {wanted!r} in\n{''.join(self.said)}")

    def until_it_runs_anew(self) -> None:
        """The batch that is open at a save is finished by the old code."""
        self.until("a file was saved")
        self.until("^running my_pipeline:process")

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.until("Stopped. The emulators and Spark were shut down")
        return self.process.wait()

    def left(self) -> list[str]:
        found = []
        for place in Path("/proc").glob("[0-9]*/environ"):
            try:
                found += [place.parent.name] if self.mark.encode() in place.read_bytes().split(b"\0") else []
            except OSError:
                continue  # it has ended, or is not ours
        return found

    def close(self) -> None:
        self._guard.cancel()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_pipeline.py").write_text(PIPELINE)
    (tmp_path / "helper.py").write_text("WORD = 'first'\n")
    return tmp_path


@pytest.fixture
def dev(folder: Path) -> Iterator[Dev]:
    started = Dev(folder, "my_pipeline:process", "--arg", "who=anna", "--interval", "0.2")
    yield started
    started.close()


@pytest.mark.slow
def test_lines_reach_the_code_a_saved_file_runs_anew_and_an_interrupt_ends_all(dev: Dev, folder: Path) -> None:
    dev.type("one")
    dev.until("^first anna one$")
    (folder / "helper.py").write_text("WORD = 'second'\n")
    dev.until_it_runs_anew()
    dev.type("two")
    dev.until("^second anna two$")
    (folder / "my_pipeline.py").write_text("def process(batch, info)\n")
    dev.until("Refused.*SyntaxError")
    (folder / "my_pipeline.py").write_text(IN_TASKS)
    dev.until_it_runs_anew()
    dev.type("three")
    dev.until("^second three$")
    (folder / "helper.py").write_text("WORD = 'third'\n")
    dev.until_it_runs_anew()
    dev.type("four")
    dev.until("^third four$")
    (folder / "my_pipeline.py").write_text(RAISES)
    dev.until_it_runs_anew()
    dev.type("five")
    dev.until("KeyError: 'amount'")
    (folder / "my_pipeline.py").write_text(IN_TASKS)
    dev.until_it_runs_anew()
    dev.until("^third five$")
    assert not [line for line in dev.said if "did not release its lease" in line], "nobody works, and a run waits all the same"
    assert len(dev.left()) >= 3  # this program, moto, Spark's JVM
    assert dev.end() == 0
    assert dev.left() == []


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
def test_an_interrupt_while_spark_starts_ends_all_without_a_stack(dev: Dev, times: int) -> None:
    """PySpark does not know its JVM yet: one that lost its parent then would stay for ever."""
    dev.until("^starting Kinesis, DynamoDB and Spark")
    for _ in range(times - 1):
        dev.process.send_signal(signal.SIGINT)
        dev.until("stopping once Spark has started")
    assert dev.end() == 0
    assert not [line for line in dev.said if "Traceback" in line or "each line of" in line]
    assert dev.left() == []


def test_a_function_that_is_not_there_is_refused_before_anything_starts(folder: Path) -> None:
    command = [sys.executable, "-m", "sluice_consumer", "dev", "my_pipeline:proces"]
    environment = os.environ | {"PYTHONPATH": str(CONSUMER)}
    ran = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (ran.stdout, ran.returncode) == ("pipeline.entrypoint: module my_pipeline has no proces\n", 65)
