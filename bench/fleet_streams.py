"""The streams of `pool_fleet`: half of them slow, half of them idle, and a producer that remembers when it put each record."""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice_lab.scenario import records
from sluice_lab.scenario.producer import Producer
from sluice_lab.scenario.topology import Stream, shard_id

MOST_SHARDS = 8
KEYS = records.hash_keys()[::2]  # one for each of eight shards
POISON = b"poison"


@dataclass
class FleetStream:
    """One stream of the fleet.

    Attributes:
        slow: whether it gets records all the time; otherwise it is idle.
        put_at: when the record of each number was put, in seconds since 1970.
    """

    name: str
    shards: int
    slow: bool
    stream: Stream
    producer: Producer
    put_at: dict[int, float] = field(default_factory=dict)

    def put(self) -> None:
        """Puts a record on each hash key in use; some are aggregates."""
        now = time.time()
        self.put_at |= dict.fromkeys((record.n for record in self.producer.put(KEYS, len(KEYS))), now)

    def poison(self) -> None:
        self.stream.put(shard_id(0), POISON)

    def reshard(self) -> None:
        """Splits the newest open shard, or merges the two that came of it."""
        open_ = [shard for shard in self.stream.shards().values() if not shard.closed]
        newest = max(open_, key=lambda shard: int(shard.short))
        siblings = [shard for shard in open_ if shard.parents and shard.parents == newest.parents]
        if len(siblings) == 2:
            self.stream.merge(*sorted(int(shard.short) for shard in siblings))
        else:
            self.stream.split(int(newest.short))


def made(kinesis: Any, count: int) -> list[FleetStream]:
    """Pairs of a slow and an idle stream, of 1 to 8 shards."""
    found = []
    for number in range(count):
        name, shards = f"fleet-{number:02d}", 1 + number // 2 % MOST_SHARDS
        stream = Stream(kinesis, name)
        stream.create(shards)
        found.append(FleetStream(name, shards, number % 2 == 0, stream, Producer(kinesis, name)))
    return found


class SlowLoad(threading.Thread):
    """Puts onto each slow stream about every `seconds`, at random times, until `stop`."""

    def __init__(self, streams: Sequence[FleetStream], seconds: float) -> None:
        super().__init__(name="load", daemon=True)
        self._seconds, self._random = seconds, random.Random(1)  # noqa: S311 - replayable, not secret
        self._due = [(time.monotonic() + self._random.random() * seconds, number, one) for number, one in enumerate(streams) if one.slow]
        heapq.heapify(self._due)
        self._ended = threading.Event()
        self.failed: Exception | None = None

    def run(self) -> None:
        try:
            while self._due and not self._ended.wait(max(0.0, self._due[0][0] - time.monotonic())):
                _, number, one = self._due[0]
                one.put()
                heapq.heapreplace(self._due, (time.monotonic() + self._seconds * self._random.uniform(0.5, 1.5), number, one))
        except Exception as error:  # noqa: BLE001 - raised by `stop`
            self.failed = error

    def stop(self) -> None:
        """Ends it.

        Raises:
            Exception: what a put raised.
        """
        self._ended.set()
        if self.is_alive():
            self.join()
        if self.failed is not None:
            raise self.failed
