"""The exit message of a driver that failed: what, where, in which batch, and what happens next. Pure.

They are the last lines of its log and, in one line, its termination message, of which the operator makes a condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sluice_checkpoints.names import plural
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.exits.user_failure import UserFailure, cut

CAUSE = 120  # characters, of a line of source too
FRAMES = 5
NAMED = 3  # shards


@dataclass(frozen=True)
class OpenBatch:
    """A batch that is not committed.

    Attributes:
        rows: of the shards whose content is known; None: the table did not say.
    """

    number: int
    consumer: str
    stream: str
    rows: Sequence[ShardRow] | None = None

    @property
    def summary(self) -> str:
        """Which one, and how much is in it."""
        stream = "" if self.stream == self.consumer else f", stream {self.stream}"
        return f"batch {self.number} of {self.consumer}{stream}{self._content}; it is not committed"

    @property
    def _content(self) -> str:
        if self.rows is None:
            return ""
        ids = sorted(row.id for row in self.rows if row.records)
        if not ids:
            return ": no record of it was read"
        named = f" ({', '.join(ids)})" if len(ids) <= NAMED else ""
        records = sum(row.records for row in self.rows)
        return f": {_counted(records, 'record')} of {_counted(len(ids), 'shard')}{named} {'was' if records == 1 else 'were'} read"

    @property
    def record(self) -> str:
        """The one record that is in it; "" if there are more."""
        full = [row for row in self.rows or () if row.records]
        if len(full) != 1 or full[0].records != 1:
            return ""
        sub = full[0].end.sub
        return f"record {full[0].first} of {full[0].id}" + ("" if sub is None else f", user record {sub} of its aggregate")


@dataclass(frozen=True)
class LastWords:
    """All that is known when a driver fails.

    Attributes:
        batch: the one that was open.
        in_pod: an operator starts the next driver.
    """

    failure: UserFailure
    batch: OpenBatch | None
    in_pod: bool

    @property
    def lines(self) -> list[str]:
        """For a screen."""
        return [self.failure.summary, *map(_indented, places(self.failure)), *self._which(), f"next: {self._next()}"]

    @property
    def line(self) -> str:
        """For a condition: of the frames only the innermost."""
        frames = self.failure.frames
        place = f" at {frames[0].place}" if frames else ""
        cause = [f"caused by {cut(self.failure.cause, CAUSE)}"] if self.failure.cause else []
        summary = f"{' '.join(self.failure.summary.split())}{place}"
        return "; ".join((summary, *cause, *self._which(), f"next: {self._next()}"))

    def _which(self) -> Iterator[str]:
        if self.batch:
            yield self.batch.summary
            if self.batch.record:
                yield self.batch.record

    def _next(self) -> str:
        same = ", with the same records" if self.batch and any(row.records for row in self.batch.rows or ()) else ""
        again = f"batch {self.batch.number} comes again{same}" if self.batch else ""
        begins = "the operator starts a driver after a pause" if self.in_pod else "run it again"
        return begins + (f"; {again}" if again else "")


def places(failure: UserFailure) -> Iterator[str]:
    """What an exception was caused by, and the user's calls that led to it, the innermost first. A line each."""
    if failure.cause:
        yield f"caused by {cut(failure.cause, CAUSE)}"
    for frame in failure.frames[:FRAMES]:
        yield f"at {frame.place}" + (f": {cut(frame.source, CAUSE)}" if frame.source else "")
    if (more := len(failure.frames) - FRAMES) > 0:
        yield f"and {_counted(more, 'call')} above"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {plural(number, what)}"


def _indented(line: str) -> str:
    return f"  {line}"
