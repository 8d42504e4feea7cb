"""Samples the checkpoint table five times a second, without the proxy, and keeps every sample that differs from the last one."""

import threading
import time
from collections.abc import Callable
from typing import Any

from sluice_lab.nemesis.takeover import Sample

SECONDS = 0.2
AT_LEAST_EVERY = 1.0  # seconds: a sample is kept then even if the row did not change, because the count of produced records does


class TableSampler(threading.Thread):
    """Samples until `stop`; `samples` may be read at any time. A read that fails adds no sample; the next one follows soon."""

    def __init__(self, dynamodb: Any, table: str, produced: Callable[[], int]) -> None:
        super().__init__(name="sampler", daemon=True)
        self.samples: list[Sample] = []
        self._dynamodb, self._table, self._produced = dynamodb, table, produced
        self._ended = threading.Event()

    def run(self) -> None:
        """Sample until `stop`."""
        while not self._ended.wait(SECONDS):
            try:
                self.sample(time.time())
            except Exception:  # noqa: BLE001, S112 - no table yet, or an emulator that is being stopped
                continue

    def sample(self, now: float) -> None:
        """Read the row `consumer` once."""
        reply = self._dynamodb.get_item(TableName=self._table, Key={"id": {"S": "consumer"}}, ConsistentRead=True)
        if row := reply.get("Item"):
            self.add(of_row(row, now, self._produced()))

    def add(self, sample: Sample) -> None:
        """Keep a sample if the row changed or the last one is old."""
        last = self.samples[-1] if self.samples else None
        if last is None or sample.at - last.at >= AT_LEAST_EVERY or _state(last) != _state(sample):
            self.samples.append(sample)

    def stop(self) -> None:
        """End the thread, and wait for it."""
        self._ended.set()
        self.join()

    @property
    def batch(self) -> int:
        """The last committed batch."""
        return self.samples[-1].batch if self.samples else 0

    @property
    def epoch(self) -> str:
        """The holder of the lease."""
        return self.samples[-1].epoch if self.samples else ""


def of_row(row: dict[str, Any], now: float, produced: int) -> Sample:
    """A sample from the row `consumer`; its holder is `<driver's pod>/<process>`."""
    epoch = row.get("holder", {}).get("S", "").partition("/")[0]
    released = bool(row.get("released", {}).get("BOOL"))
    return Sample(now, int(row["generation"]["N"]), epoch, int(row["committed"]["N"]), released, produced)


def _state(sample: Sample) -> tuple[int, int, bool]:
    return sample.generation, sample.batch, sample.released
