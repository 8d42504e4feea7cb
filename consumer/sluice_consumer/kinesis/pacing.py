"""Keeping to a shard's limits before the service has to say so: GetRecords 5 calls and 2 MiB a second, GetShardIterator 5 calls a second.

Buckets are per process. Two tasks that read one shard after the other in different processes do not see each other's calls; what that
overdraws comes back as throttling and is retried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

CALLS_PER_SECOND = 5.0  # API reference, GetRecords and GetShardIterator: per shard
BYTES_PER_SECOND = 2.0 * 1024 * 1024  # API reference, GetRecords: a reply of 10 MiB blocks the shard for 5 s


@dataclass
class Bucket:
    """Tokens that come at `rate` a second, up to one second's worth; taking more than there are leaves a debt to wait for."""

    rate: float
    tokens: float = field(init=False)
    at: float

    def __post_init__(self) -> None:
        self.tokens = self.rate

    def take(self, amount: float, now: float) -> None:
        """Takes `amount`, at time `now` in seconds."""
        self.tokens = min(self.rate, self.tokens + (now - self.at) * self.rate) - amount
        self.at = now

    def wait(self) -> float:
        """Seconds until the debt is paid."""
        return max(0.0, -self.tokens / self.rate)


class Pacer:
    """The buckets of all shards of a stream that this process reads. Thread safe.

    Attributes:
        clock, sleep: seconds of a monotonic clock, and waiting on it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> None:
        self.clock, self.sleep = clock, sleep
        self._calls: dict[tuple[str, str], Bucket] = {}
        self._bytes: dict[str, Bucket] = {}
        self._lock = threading.Lock()

    def before(self, call: str, shard_id: str) -> None:
        """Waits until `call` (its name) may be made on a shard."""
        with self._lock:
            now = self.clock()
            calls = self._calls.setdefault((call, shard_id), Bucket(CALLS_PER_SECOND, now))
            calls.take(1, now)
            wait = max(calls.wait(), self._read(shard_id, 0, now))
        if wait > 0:
            self.sleep(wait)

    def after(self, shard_id: str, size: int) -> None:
        """Notes that `size` bytes of payload were read from a shard."""
        with self._lock:
            self._read(shard_id, size, self.clock())

    def _read(self, shard_id: str, size: int, now: float) -> float:
        bucket = self._bytes.setdefault(shard_id, Bucket(BYTES_PER_SECOND, now))
        bucket.take(size, now)
        return bucket.wait()
