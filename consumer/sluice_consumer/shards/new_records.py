"""Asks the service whether idle shards have new records, without reading them (docs/protocol.md, "A batch").

The batch loop asks once a second. Spark, without a trigger, asks every 10 ms; the shards are still asked once a second at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import ShardRow

STALE_MILLIS = 3_600_000  # an idle shard's readTo may not grow older than this (docs/protocol.md, "Retention")
THREADS = 32


class Prober(Protocol):
    """Looks at one shard."""

    def ask(self) -> bool:
        """Whether anything is new."""
        ...


@dataclass
class Every:
    """True when first asked after each `seconds` of the clock; at first at `last` + `seconds`."""

    seconds: float
    clock: Callable[[], float] = time.monotonic
    last: float = float("-inf")

    def __call__(self) -> bool:
        """Whether it is time again."""
        now = self.clock()
        due = now - self.last >= self.seconds
        self.last = now if due else self.last
        return due


class NewRecords:
    """Looks at shards at their positions."""

    def __init__(self, watch: Callable[[ShardRow], Prober], now_millis: Callable[[], int], due: Callable[[], bool] = lambda: True) -> None:
        """Keeps a prober for each shard.

        Args:
            watch: makes the prober of a shard at the end of its row's range.
            now_millis: a recent time of the service, for `readTo` is the service's; the driver's clock may be wrong.
            due: whether the shards may be asked now.
        """
        self._watch, self._now, self._due = watch, now_millis, due
        self._probers: dict[tuple[str, Position], Prober] = {}

    def __call__(self, rows: Sequence[ShardRow]) -> bool:
        """Whether one of the shards has more, or was not looked at for an hour: then an empty batch keeps its `readTo` young."""
        return any(row.behind for row in rows) or self._stale(rows) or (self._due() and self._ask(rows))

    def _stale(self, rows: Sequence[ShardRow]) -> bool:
        oldest = min((row.read_to for row in rows if row.read_to), default=0)
        return 0 < oldest < self._now() - STALE_MILLIS

    def _ask(self, rows: Sequence[ShardRow]) -> bool:
        """Each shard's prober keeps its iterator for as long as the shard's position stays the same."""
        self._probers = {(row.id, row.end): self._probers.get((row.id, row.end)) or self._watch(row) for row in rows}
        with ThreadPoolExecutor(max(1, min(THREADS, len(rows))), thread_name_prefix="probe") as threads:
            return any(list(threads.map(lambda prober: prober.ask(), self._probers.values())))
