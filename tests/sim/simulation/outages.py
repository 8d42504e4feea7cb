"""Outages of a world's sink: of everything, or of a part (docs/protocol.md, "Poison"). `process` raises in them by the error of a poison record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

SECONDS = 50.0  # of an outage that excludes nothing: less than the shortest doubt (`epochs.PATIENCE`)
EVERYTHING, SHARD, KEY, CALLS = "everything", "shard", "key", "calls"
PARTS = (EVERYTHING, SHARD, KEY, CALLS)
KEYS = 3


@dataclass
class Outage:
    """One outage.

    Attributes:
        part: of everything, of the records of one shard, of those of one key (their numbers tell), of seven calls of ten.
        which: shard or key, among those that there are.
        until: virtual seconds.
    """

    part: str = EVERYTHING
    which: int = 0
    until: float = inf
    _calls: int = 0

    def meets(self, rows: Mapping[str, tuple[str, ...]], now: float) -> bool:
        if now >= self.until:
            return False
        self._calls += 1
        names = {shard: records for shard, records in rows.items() if records}
        if self.part == SHARD:
            return any(int(shard.rpartition("-")[2]) % KEYS == self.which % KEYS for shard in names)
        if self.part == KEY:
            return any(int(name) % KEYS == self.which % KEYS for records in names.values() for name in records)
        return self.part == EVERYTHING or (self._calls * 7 + self.which) % 10 < 7
