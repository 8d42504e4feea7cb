"""What the command line says: to people (rich), to programs (one JSON document), and to Kubernetes (the termination log).

Standard output and error never end a command: what was done counts, whether or not somebody could read of it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO, cast

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from sluice_checkpoints import termination_log
from sluice_checkpoints.migrate.migrator import MigrationResult
from sluice_checkpoints.migrate.plan import MigrationPlan, as_document
from sluice_checkpoints.migrate.ports import MigrationProgress
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import Item

WARNINGS_SAID = 10  # in the document; the log has all of them
WIDTH = 150  # of a log; a terminal says its own
HEAD, TAIL = 8, 10  # digits of a sequence number that people are shown


class LastingStream:
    """A text stream that is written to for as long as it takes text, and after that says nothing.

    A character that its encoding does not have is written as an escape.

    Attributes:
        problem: why text was lost; None: none was. A reader that left on purpose (`| head -1`) has lost nothing.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        """`stream` is None where the program was started with it closed."""
        self._stream, self._closed = stream, stream is None
        self.problem: str | None = None
        with suppress(AttributeError, OSError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # only a TextIOWrapper has it

    @property
    def encoding(self) -> str:
        """Of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        with suppress(OSError, ValueError):
            return self._stream is not None and self._stream.isatty()
        return False

    def fileno(self) -> int:
        if self._stream is None:
            raise OSError("it was closed")
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """See `IO.write`; it raises nothing."""
        try:
            if self._stream is not None:
                self._stream.write(text)
            elif self._closed:
                self.problem = "it is closed"
        except (OSError, ValueError) as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """See `IO.flush`; it raises nothing."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except (OSError, ValueError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """What the stream still holds would be written, and fail, once more when Python ends: it goes nowhere instead."""
        self.problem = None if isinstance(error, BrokenPipeError) else str(error)
        with suppress(OSError, ValueError):
            nowhere, broken = os.open(os.devnull, os.O_WRONLY), self.fileno()
            os.dup2(nowhere, broken)
            os.close(nowhere)
        self._stream = None


def _console(stream: LastingStream) -> Console:
    file = cast(IO[str], stream)
    console = Console(file=file, emoji=False, highlight=False)
    return console if console.is_terminal else Console(file=file, emoji=False, highlight=False, width=WIDTH)


def short(text: str) -> str:
    """A position as people read it: of a long sequence number the first and the last digits."""
    words = (f"{w[:HEAD]}…{w.partition('/')[0][-TAIL:]}{''.join(w.partition('/')[1:])}" if len(w) > 2 * (HEAD + TAIL) else w for w in text.split())
    return " ".join(words)


def summary(result: MigrationResult) -> Item:
    """The document of a migration without its plan (docs/interfaces.md)."""
    return {
        "reason": result.state.capitalize(),
        "message": result.message,
        "state": result.state,
        "shards": result.shards,
        "counts": result.plan.counts if result.plan else {},
        "digest": result.digest,
        "warnings": len(result.warnings),
        "firstWarnings": list(result.warnings[:WARNINGS_SAID]),
    }


class Output:
    """Where results and errors go. With `as_json`, stdout carries one JSON document and nothing else.

    Attributes:
        finished: the command has done what it was asked, and left a termination message that says so. That stands, whatever comes after it.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json, self.finished = as_json, False
        self._stdout = LastingStream(sys.stdout)
        self.out, self.log = _console(self._stdout), _console(LastingStream(sys.stderr))

    def delivered(self) -> bool:
        """Whether all that was printed on stdout was taken, or left on purpose; if not, stderr says why."""
        self._stdout.flush()
        if self._stdout.problem is None:
            return True
        self.log.print(f"[yellow]warning[/] the result was not written to stdout: {escape(self._stdout.problem)}", soft_wrap=True)
        return False

    def document(self, document: Item) -> None:
        """Prints one JSON document."""
        self.out.file.write(json.dumps(document) + "\n")

    def done(self, document: Item) -> None:
        """Leaves a termination message for good: nothing that happens afterwards replaces it."""
        self.terminate(document)
        self.finished = True

    def terminate(self, document: Item) -> None:
        """Writes the document to the termination log, if this is a container. A failure to do so is only logged."""
        if self.finished:
            return
        if problem := termination_log.write(document):
            self.log.print(f"[yellow]warning[/] no termination message was left: {escape(problem)}", soft_wrap=True)

    def migrated(self, result: MigrationResult) -> None:
        """The result of a migration, everywhere."""
        self.done(summary(result))
        for warning in result.warnings:
            self.log.print(f"[yellow]warning[/] {escape(warning)}", soft_wrap=True)
        if self.as_json:
            plan = [as_document(planned) for planned in result.plan.shards] if result.plan else []
            self.document(summary(result) | {"plan": plan})
            return
        if result.plan:
            self.out.print(_plan_grid(result.plan))
        counts = "".join(f" · {number} {name}" for name, number in summary(result)["counts"].items() if number)
        self.out.print(f"[green]{result.state}[/] {escape(result.message)}{counts}", soft_wrap=True)
        self.out.print(f"digest {result.digest}", soft_wrap=True)

    def failed(self, error: Exception, code: int, *, terminal: bool) -> None:
        """An error, everywhere."""
        document = {"reason": type(error).__name__, "message": str(error)}
        if terminal:
            self.terminate(document)
        if self.as_json:
            self.document(document)
        self.log.print(f"[red]{document['reason']}[/] (exit {code}) {escape(document['message'])}", soft_wrap=True)


class LoggedProgress(MigrationProgress):
    """Progress as lines on stderr; long copies are reported in tenths."""

    def __init__(self, console: Console) -> None:
        self._console, self._tenths = console, 0

    def step(self, text: str) -> None:
        self._tenths = 0
        self._console.print(f"[cyan]·[/] {escape(text)}")

    def waiting(self, seconds: float, why: str) -> None:
        if seconds:
            self._console.print(f"[cyan]·[/] waiting {seconds:g} s: {escape(why)}")

    def wrote(self, rows: int, of: int) -> None:
        if (tenths := rows * 10 // of) > self._tenths:
            self._tenths = tenths
            self._console.print(f"    {rows} of {of} rows")


def _plan_grid(plan: MigrationPlan) -> Grid:
    grid = Grid("shard", "stored", "planned", "why", "records", title="Plan", title_justify="left", title_style="bold")
    for planned in plan.shards:
        style = "red" if planned.verdict.lost else "yellow" if planned.verdict.warning else ""
        stored = escape(short(planned.stored)) if planned.stored else "no row"
        risk = "possibly lost" if planned.verdict.lost else "read again" if planned.verdict.again else ""
        grid.add_row(planned.id, stored, place(planned.row.start), escape(planned.verdict.why), risk, style=style)
    return grid


def place(position: Position) -> str:
    """A position in a table for people; a time in UTC."""
    if position.millis is None:
        return short(str(position))
    return f"{position.at} {datetime.fromtimestamp(position.millis / 1000, UTC).isoformat(sep=' ', timespec='milliseconds')}"
