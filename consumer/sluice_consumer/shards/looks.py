"""Looks at shards that brought nothing, without reading them: which of them are idle (docs/protocol.md, "Idle shards").

The batch loop asks before each batch, and Spark, without a trigger, every 10 ms; a shard is looked at once a second at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import ShardRow

LOOK_SECONDS = 1.0  # from look to look at a shard: one of the five calls a second that it gives to all its consumers
KEPT_SECONDS = 300.0  # of a shard that nobody asks about: its iterator is good for five minutes
THREADS = 32


class Prober(Protocol):
    """Looks at one shard."""

    def idle(self) -> bool:
        """Whether it came to the tip and found nothing."""
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


@dataclass(slots=True)
class Look:
    """What was last seen of a shard after the place `end`. `at`: when, also if that was at another place; `idle`: None: not looked there yet."""

    prober: Prober
    end: Position
    at: float = float("-inf")
    idle: bool | None = None

    def again(self, now: float) -> None:
        """Looks now."""
        self.idle, self.at = self.prober.idle(), now


class ShardLooks:
    """Looks at shards behind their rows' ranges, and remembers what it saw. To be called by one thread at a time."""

    def __init__(self, watch: Callable[[ShardRow], Prober], clock: Callable[[], float] = time.monotonic) -> None:
        """`watch` makes the prober of a shard at the end of its row's range."""
        self._watch, self._clock = watch, clock
        self._looks: dict[str, Look] = {}

    def __call__(self, rows: Sequence[ShardRow]) -> dict[str, bool]:
        """Which of these shards are idle, and which are not. One that was not looked at where its row stands now is left out.

        Raises:
            Refused, ServiceUnavailable: see `KinesisClient`.
        """
        now = self._clock()
        asked = {row.id: self._look(row) for row in rows}
        self._looks = {shard: look for shard, look in self._looks.items() if now - look.at < KEPT_SECONDS} | asked
        self._look_again([look for look in asked.values() if now - look.at >= LOOK_SECONDS], now)
        return {shard: look.idle for shard, look in asked.items() if look.idle is not None}

    def _look(self, row: ShardRow) -> Look:
        """A prober keeps its iterator for as long as the shard's position stays the same."""
        known = self._looks.get(row.id)
        if known is not None and known.end == row.end:
            return known
        return Look(self._watch(row), row.end, known.at if known else float("-inf"))

    @staticmethod
    def _look_again(due: Sequence[Look], now: float) -> None:
        if due:
            with ThreadPoolExecutor(min(THREADS, len(due)), thread_name_prefix="probe") as threads:
                list(threads.map(lambda look: look.again(now), due))
