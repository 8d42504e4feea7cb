"""Looks at the checkpoint table five times a second, past the proxy, and keeps every look that says something new."""

import threading
import time
from collections.abc import Callable
from typing import Any

from sluice_lab.nemesis.takeover import Look

SECONDS = 0.2
RARELY = 1.0  # seconds after which a look is kept even if nothing moved: records are put meanwhile


class TableSampler(threading.Thread):
    """Looks until `stop`; `looks` may be read meanwhile. A look that fails is none: the next one says more."""

    def __init__(self, dynamodb: Any, table: str, produced: Callable[[], int]) -> None:
        super().__init__(name="watch", daemon=True)
        self.looks: list[Look] = []
        self._dynamodb, self._table, self._produced = dynamodb, table, produced
        self._ended = threading.Event()

    def run(self) -> None:
        """Look."""
        while not self._ended.wait(SECONDS):
            try:
                self.look(time.time())
            except Exception:  # noqa: BLE001, S112 - no table yet, or an emulator that is being stopped
                continue

    def look(self, now: float) -> None:
        """Once."""
        found = self._dynamodb.get_item(TableName=self._table, Key={"id": {"S": "consumer"}}, ConsistentRead=True)
        if row := found.get("Item"):
            self.add(read(row, now, self._produced()))

    def add(self, look: Look) -> None:
        """Keep it if it is worth it."""
        last = self.looks[-1] if self.looks else None
        if last is None or look.at - last.at >= RARELY or _state(last) != _state(look):
            self.looks.append(look)

    def stop(self) -> None:
        """End, and wait for it."""
        self._ended.set()
        self.join()

    @property
    def batch(self) -> int:
        """The last batch that was committed."""
        return self.looks[-1].batch if self.looks else 0

    @property
    def epoch(self) -> str:
        """Who holds the lease."""
        return self.looks[-1].epoch if self.looks else ""


def read(row: dict[str, Any], now: float, produced: int) -> Look:
    """A look from the row `consumer`; its holder is `<driver's pod>/<process>`."""
    epoch = row.get("holder", {}).get("S", "").partition("/")[0]
    released = bool(row.get("released", {}).get("BOOL"))
    return Look(now, int(row["generation"]["N"]), epoch, int(row["committed"]["N"]), released, produced)


def _state(look: Look) -> tuple[int, int, bool]:
    return look.generation, look.batch, look.released
