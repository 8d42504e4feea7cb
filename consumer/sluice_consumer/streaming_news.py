"""Whether there is anything to read. Without a trigger Spark asks every 10 ms; shards are asked at most once a second, as the loop does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sluice_checkpoints.model import ShardRow
from sluice_checkpoints.position import Position
from sluice_consumer.loop import PROBE_SECONDS, STALE_MILLIS, Prober


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


class News:
    """Looks at shards where they stand."""

    def __init__(self, watch: Callable[[ShardRow], Prober], due: Callable[[], bool] | None = None, wall: Callable[[], float] = time.time) -> None:
        self._watch, self._due, self._wall = watch, due or Every(PROBE_SECONDS), wall
        self._probers: dict[tuple[str, Position], Prober] = {}

    def __call__(self, rows: Sequence[ShardRow]) -> bool:
        """Whether one of the shards has more, or was not looked at for an hour: then an empty batch keeps its `readTo` young."""
        return any(row.behind for row in rows) or self._stale(rows) or (self._due() and self._ask(rows))

    def _stale(self, rows: Sequence[ShardRow]) -> bool:
        oldest = min((row.read_to for row in rows), default=0)
        return 0 < oldest < self._wall() * 1000 - STALE_MILLIS

    def _ask(self, rows: Sequence[ShardRow]) -> bool:
        """Each shard's prober keeps its iterator for as long as the shard stands where it stood."""
        self._probers = {(row.id, row.end): self._probers.get((row.id, row.end)) or self._watch(row) for row in rows}
        with ThreadPoolExecutor(max(1, min(32, len(rows))), thread_name_prefix="probe") as threads:
            return any(list(threads.map(lambda prober: prober.ask(), self._probers.values())))
