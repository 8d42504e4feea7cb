"""How busy a driver is, and how many shards give it work: what autoscalers go by (docs/how-to/scale.md).

Measured here, because only the driver knows the batch that is open: a batch of ten minutes is work before it is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from sluice_checkpoints.protocol.rows import ShardRow

WINDOW_SECONDS = 60.0
INTERVALS = 3  # so that a window has whole intervals, and not just the part in which a batch runs
NEWS = 0.1  # a smaller change of `busy` waits for the next batch

Span = tuple[float, float]


class Load:
    """The work of the last minute, or of the last three intervals, if they are longer.

    One thread works, and others may read: what they read is replaced, never changed.
    """

    def __init__(self, interval: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        """`interval`: seconds from batch to batch."""
        self.window = max(WINDOW_SECONDS, INTERVALS * interval)
        self._clock, self._began = clock, clock()
        self._open: float | None = None
        self._spans: tuple[Span, ...] = ()
        self._read: tuple[tuple[float, frozenset[str]], ...] = ()

    def begin(self) -> None:
        """A batch begins."""
        self._open = self._clock()

    def end(self) -> None:
        """It was committed, or it failed."""
        if self._open is not None:
            self._worked(self._open)
            self._open = None

    def committed(self, rows: Iterable[ShardRow], seconds: float) -> None:
        """A batch of these rows was committed. Its time counts once, even if `begin` and `end` marked it already."""
        self._worked(self._clock() - seconds)
        now, shards = self._clock(), frozenset(row.id for row in rows if row.records)
        self._read = (*(each for each in self._read if each[0] > now - self.window), (now, shards))

    def _worked(self, since: float) -> None:
        now = self._clock()
        start = max(since, self._spans[-1][1] if self._spans else since)
        self._spans = (*(span for span in self._spans if span[1] > now - self.window), (start, now))

    @property
    def busy(self) -> float:
        """The part of the window, 0 to 1, in which a batch was worked on, with the open batch so far."""
        now, opened = self._clock(), self._open
        since = max(self._began, now - self.window)
        spans = (*self._spans, *(((opened, now),) if opened is not None else ()))
        worked = sum(max(0.0, end - max(start, since)) for start, end in spans)
        return round(min(1.0, worked / (now - since)), 2) if now > since else 0.0

    @property
    def active_shards(self) -> int:
        """How many shards gave records in the window. Each is read by one task at a time, so more tasks read no faster."""
        since = self._clock() - self.window
        return len(frozenset().union(*(shards for at, shards in self._read if at > since)))


def steady(before: float | None, now: float) -> float:
    """What is reported between two batches: the former value, unless it is no longer about right. Each new value is a write to the API server."""
    return now if before is None or abs(now - before) >= NEWS or (now != before and now in {0.0, 1.0}) else before
