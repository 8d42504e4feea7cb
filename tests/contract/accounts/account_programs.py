"""Programs over a stream of another account: `python -m sluice_consumer`, and a streaming query."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conftest_accounts import RECORDS, Theirs

ROOT = Path(__file__).parents[3]
SECONDS = 180.0
EXPIRIES = 20
PAUSE = threading.Event()  # never set
PIPELINE = """
import os

def process(batch, info):
    rows = sorted(int(row.data) for row in batch.select("data").collect())
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(f"{info.batch} {rows}\\n")
"""


class Program:
    def __init__(self, theirs: Theirs, folder: Path) -> None:
        self.folder, self.lines, self._theirs = folder, list[str](), theirs
        (folder / "numbers_seen.py").write_text(PIPELINE)
        (folder / "consumer.json").write_text(json.dumps(small_batches(theirs)))
        self.process: subprocess.Popen[str] | None = None
        self.environment = dict[str, str]()

    @property
    def command(self) -> list[str]:
        return ["-m", "sluice_consumer", "--config", str(self.folder / "consumer.json"), "--master", "local[2]"]

    def set(self, **fields: Any) -> None:
        path = self.folder / "consumer.json"
        written = json.loads(path.read_text())
        merged = {name: written[name] | value if isinstance(written.get(name), dict) else value for name, value in fields.items()}
        path.write_text(json.dumps(written | merged))

    @contextlib.contextmanager
    def running(self) -> Iterator[Program]:
        ours = os.pathsep.join([str(ROOT / "consumer"), str(self.folder)])
        python = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": ours}
        environment = os.environ | python | {"SEEN": str(self.folder / "seen"), "SLUICE_TERMINATION_LOG": str(self.folder / "last")}
        with subprocess.Popen([sys.executable, *self.command], env=environment | self.environment, stderr=subprocess.PIPE, text=True) as self.process:
            assert self.process.stderr is not None
            reader = threading.Thread(target=self.lines.extend, args=(self.process.stderr,))
            reader.start()
            try:
                yield self
            finally:
                if self.process.poll() is None:
                    self.process.send_signal(signal.SIGTERM)
                self.process.wait(60)
                reader.join()

    @property
    def batches(self) -> dict[int, list[int]]:
        """What `process` was given: the numbers by batch; the last time counts, for a batch comes again with the same content."""
        path = self.folder / "seen"
        lines = path.read_text().splitlines() if path.exists() else []
        return {int(number): json.loads(rows) for number, _, rows in (line.partition(" ") for line in lines)}

    @property
    def numbers(self) -> list[int]:
        return sorted(number for rows in self.batches.values() for number in rows)

    def wait(self, what: str, condition: Any) -> None:
        left = SECONDS
        while not condition():
            assert self.process is not None
            assert self.process.poll() is None, "".join(self.lines)
            assert left > 0, f"{what}: {''.join(self.lines)}"
            PAUSE.wait(0.2)
            left -= 0.2

    def ended(self) -> dict[str, Any]:
        assert self.process is not None
        self.process.wait(SECONDS)
        assert (self.folder / "last").exists(), "".join(self.lines)
        found: dict[str, Any] = json.loads((self.folder / "last").read_text())
        return found


class QueryProgram(Program):
    @property
    def command(self) -> list[str]:
        return [str(Path(__file__).with_name("streaming_program.py")), str(self.folder)]


def small_batches(theirs: Theirs) -> dict[str, Any]:
    written: dict[str, Any] = theirs.document()
    return written | {
        "pipeline": {"entrypoint": "numbers_seen:process"},
        "batch": {"intervalSeconds": 0.2},
        "leaseDurationSeconds": 30,
        "sparkConf": {"spark.log.level": "OFF"},
    }


def run_through_expiries(theirs: Theirs, program: Program) -> None:
    """Twenty sessions expire while records come: each record is delivered once, and each batch succeeds at its first try."""
    theirs.accounts.seconds, sent = 1.5, RECORDS
    told_all(program)
    with program.running():
        program.wait("the first batch", lambda: program.numbers)
        begun = len(theirs.accounts.ends)
        while len(theirs.accounts.ends) < begun + EXPIRIES:
            theirs.put(range(sent, sent := sent + 5))
            program.wait("a batch", lambda: len(program.numbers) >= sent)
    assert program.process is not None
    assert program.process.returncode == 0, "".join(program.lines)
    assert program.numbers == list(range(sent))
    assert (program.folder / "seen").read_text().count("\n") == len(program.batches), "a batch came twice"
    check_secrets(theirs, program)


def told_all(program: Program) -> None:
    (program.folder / "events").mkdir()
    program.environment["SLUICE_LOG_LEVEL"] = "debug"
    program.set(
        sparkConf={"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": (program.folder / "events").as_uri()}
    )


def check_secrets(theirs: Theirs, program: Program) -> None:
    """No key of a session is in a line, in an event of Spark, or in a file of a checkpoint (docs/security.md, "Streams of other accounts")."""
    written = {path: path.read_bytes() for path in program.folder.rglob("*") if path.is_file()}
    assert any("events" in path.parts for path in written)
    assert len(theirs.accounts.secrets) >= 2 * EXPIRIES
    for secret in theirs.accounts.secrets:
        assert not [line for line in program.lines if secret in line]
        assert not [path for path, content in written.items() if secret.encode() in content]
