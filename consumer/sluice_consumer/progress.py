"""What a driver has done so far: lines for its log, and the numbers of its report (docs/interfaces.md, "Report")."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from sluice_checkpoints.model import END
from sluice_consumer.life import Committed, Consumer

WINDOW = 30  # batches over which the rate is taken
WARNINGS = 5  # the last ones are reported; all of them are in the log


class Progress:
    """Counts the batches of one life."""

    def __init__(self, consumer: Consumer, generation: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._consumer, self._generation, self._clock = consumer, generation, clock
        self._records, self._behind = 0, 0
        self._recent: deque[tuple[float, int]] = deque([(clock(), 0)], maxlen=WINDOW)
        self._warnings: deque[str] = deque(maxlen=WARNINGS)

    def add(self, committed: Committed, seconds: float) -> str:
        """Counts a batch, and describes it in one line."""
        self._records += committed.records
        self._behind = committed.behind_millis
        self._recent.append((self._clock(), committed.records))
        self._warnings.extend(f"DataLossSuspected: {note}" for note in committed.notes)
        lost = "".join(f"; {note}" for note in committed.notes)
        shards = len(committed.rows)
        return f"batch {committed.number}: {committed.records} records of {shards} shards in {seconds:.3f} s, {self._behind} ms behind{lost}"

    def warn(self, warning: str) -> None:
        """Adds a warning, `"<reason>: <text>"`, to every further report."""
        self._warnings.append(warning)

    def report(self) -> dict[str, Any]:
        """The fields of the report that follow from rows and batches."""
        view = self._consumer.view
        ended = sum(row.stands(view.committed) == END for row in view.rows.values())
        return {
            "generation": self._generation,
            "batch": view.committed,
            "openShards": len(view.rows) - ended,
            "endedShards": ended,
            "heldShards": sum(row.generation == self._generation for row in view.rows.values()),
            "millisBehindLatest": self._behind,
            "records": self._records,
            "recordsPerSecond": self._rate(),
            "warnings": list(self._warnings),
        }

    def _rate(self) -> float:
        seconds = self._clock() - self._recent[0][0]
        return round(sum(records for _, records in list(self._recent)[1:]) / seconds, 1) if seconds else 0.0
