"""Counts the requests that a process makes to AWS, for metrics. The shards' rows carry the counts of a task to the driver (docs/metrics.md).

A bind writes a row anyway, so what it carries costs no request; and a row that was bound is read at the commit, by whichever epoch commits it. So a
count arrives once, whatever becomes of the task that made it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
Counts = Mapping[str, int]  # "service/operation": requests; "service/operation/cause": those made again, by the error before

DYNAMODB, KINESIS = "dynamodb", "kinesis"
BIND = f"{DYNAMODB}/UpdateItem"


class RequestCounter:
    """The counts of one process. Thread safe."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, key: str) -> None:
        """One more."""
        with self._lock:
            self._counts[key] += 1

    def listener(self, service: str) -> CallListener:
        """A listener of the calls to one service."""
        return CallListener(self, service)

    def counts(self) -> Counts:
        """All that was counted and not carried away."""
        with self._lock:
            return self._counts.copy()

    def carry(self, bind: Callable[[Counts], T | None]) -> T | None:
        """Has a bind carry what was counted so far, and itself: nothing may come after it that could carry that.

        Args:
            bind: writes the counts. Only None says that they are written; if it returns anything else or raises they stay for the next one. (A bind
                that gives up without an answer may have been written all the same: then they are counted twice.)
        """
        counts, written = self._take(), False
        try:
            outcome = bind(counts)
            written = outcome is None
            return outcome
        finally:
            if not written:
                with self._lock:
                    self._counts.update(counts)

    def _take(self) -> Counts:
        with self._lock:
            taken = Counter({key: number for key, number in self._counts.items() if number > 0})
            taken[BIND] += 1
            self._counts.subtract(taken)  # -1 of the bind, until it is heard of
            return taken


@dataclass(frozen=True)
class CallListener:
    """Hears of the calls to one service. Implements `retry.Listener`."""

    requests: RequestCounter
    service: str

    def called(self, operation: str) -> None:
        """A call is made."""
        self.requests.add(f"{self.service}/{operation}")

    def again(self, operation: str, cause: str) -> None:
        """A call is made again."""
        self.requests.add(f"{self.service}/{operation}/{cause}")
