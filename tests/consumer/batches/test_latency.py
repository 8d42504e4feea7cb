"""How long a record waits on a quiet stream: the real loop, probes and reader in virtual time (docs/performance.md, "Latency on quiet streams")."""

from __future__ import annotations

import statistics
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_consumer.batches import bootstrap
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.loop import Loop, LoopTimings
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.config import StartConfig
from sluice_consumer.kinesis.client import Page
from sluice_consumer.kinesis.pacing import CALLS_PER_SECOND, Bucket
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.probes import KinesisProber, ProbeLimits, ProbeScheduler
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.shards.reader import ShardReader
from sluice_lab.fakes.kinesis import MemoryKinesis
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

NOW = 1_700_000_000.0
BATCH_SECONDS = 0.12
SHARDS = 3
SECONDS = 60


class Counting(MemoryKinesis):
    """A client that notes when each shard was asked for records, and what the service would have refused of it and of all others."""

    def __init__(self, quiet: Quiet) -> None:
        super().__init__(quiet.stream)
        self._quiet = quiet
        self.asked: dict[str, list[float]] = defaultdict(list)

    def get_records(self, shard_id: str, iterator: str, limit: int) -> Page:
        quiet = self._quiet
        self.asked[shard_id].append(quiet.now)
        bucket = quiet.quota.setdefault(shard_id, Bucket(CALLS_PER_SECOND, quiet.now))
        bucket.take(0, quiet.now)
        refused = bucket.tokens < 1 - 1e-3
        bucket.take(0 if refused else 1, quiet.now)
        quiet.refused += refused
        return super().get_records(shard_id, iterator, limit)


def moments() -> Iterator[float]:
    """When a record comes to each shard: once in each second, at any moment of it. The golden ratio leaves no moment out, and repeats none."""
    return (second + (second * 0.618033988749895) % 1 for second in range(SECONDS))


@dataclass
class Quiet:
    """A stream with a record a second on each shard, and a consumer without an interval.

    Attributes:
        waited: seconds from the arrival of each record to the commit of its batch.
        batches: how many there were.
        probes, reads: the clients of probes and of batches.
        quota: the calls that each shard still gives; refused: how many were beyond it.
    """

    share: float | None
    now: float = NOW
    waited: list[float] = field(default_factory=list)
    batches: int = 0
    quota: dict[str, Bucket] = field(default_factory=dict)
    refused: int = 0

    def __post_init__(self) -> None:
        self.stream = MemoryStream("s", SHARDS, now=lambda: round(self.now * 1000))
        self.store = CheckpointStore(MemoryTable())
        bootstrap.prepare(self.store, bootstrap.Seed("p", "id", self.stream.describe(), self.stream.list_shards()), StartConfig())
        row = self.store.consumer()
        assert row is not None
        taken = self.store.take(row, row)
        assert taken is not None
        self.consumer = Consumer(self.store, self.stream, Epoch(taken.generation, taken.token))
        self.consumer.begin()
        self.probes, self.reads = Counting(self), Counting(self)
        self.reader = ShardReader(self.reads, self.stream, self.stream.describe())
        self._due = deque(sorted((NOW + 1 + at, shard) for shard in self.stream.shards for at in moments()))
        self._there: dict[str, deque[float]] = defaultdict(deque)

    def passes(self, seconds: float) -> None:
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            self.now, shard = self._due.popleft()
            self.stream.put_in(shard, b"x")
            self._there[shard].append(self.now)
        self.now = until

    def run(self, plan: BatchPlan) -> None:
        for number, row in enumerate(plan.rows):
            attempt = TaskAttempt(f"1.{plan.number}.{number}", 1)
            read_shard(self.store, self.reader, Task(self.consumer.epoch, plan.number, attempt, Limits(100, 2**20), 12.0, self.passes), row)
        self.batches += 1
        self.passes(BATCH_SECONDS)

    def is_set(self) -> bool:
        return not self._due

    def wait(self, seconds: float) -> bool:
        self.passes(seconds)
        return False

    def _told(self, committed: Committed | None, _seconds: float) -> None:
        for row in committed.rows if committed else ():
            self.waited += [self.now - self._there[row.id].popleft() for _ in range(row.records)]

    def loop(self) -> Quiet:
        probes = ProbeScheduler(lambda row: KinesisProber(self.probes, row.id, row.end), lambda: self.now, ProbeLimits.of(self.share))
        timings = LoopTimings(0.0, None, probes, self._told, lambda: None, lambda: self.now, pause=probes.pause)
        Loop(self.consumer, self, timings, cast("Any", self)).run()
        return self


def in_a_second(calls: list[float]) -> int:
    return max(sum(0 <= call - first < 1 - 1e-6 for call in calls) for first in calls)


def p50_p90(quiet: Quiet) -> tuple[float, float]:
    """Seconds from a record's arrival to its commit, less the batch."""
    waited = [seconds - BATCH_SECONDS for seconds in quiet.waited]
    return statistics.median(waited), statistics.quantiles(waited, n=10)[8]


@pytest.mark.parametrize(("share", "p50", "p90"), [(None, 0.15, 0.2), (1.0, 0.15, 0.2), (0.6, 0.2, 0.35), (0.4, 0.26, 0.5), (0.2, 0.51, 1.0)])
def test_a_record_on_a_quiet_stream_waits_for_a_probe_as_long_as_the_share_lets_it(share: float | None, p50: float, p90: float) -> None:
    quiet = Quiet(share).loop()
    median, tail = p50_p90(quiet)
    assert len(quiet.waited) > SHARDS * SECONDS - 10
    assert median <= p50
    assert tail <= p90
    assert max(map(in_a_second, quiet.probes.asked.values())) <= 5 * (share or 1)


@pytest.mark.parametrize("share", [None, 1.0, 0.6, 0.4, 0.2])
def test_probes_and_batches_together_take_no_more_of_a_shard_than_it_gives(share: float | None) -> None:
    """What the service refuses is asked for once more, and later: with probes that count only themselves the whole quota is slower than a part."""
    assert Quiet(share).loop().refused == 0


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_a_record_of_a_quiet_shard_is_one_batch_of_one_call(share: float) -> None:
    """That nothing follows is for a probe to say; and a shard that may not be probed yet is in no batch."""
    quiet = Quiet(share).loop()
    assert quiet.batches <= len(quiet.waited)
    assert max(len(calls) for calls in quiet.reads.asked.values()) <= SECONDS * 1.2


def test_with_a_fifth_of_the_quota_a_record_waits_for_longer_than_by_default() -> None:
    """Else the test above could not fail."""
    assert p50_p90(Quiet(0.2).loop())[1] > 2 * p50_p90(Quiet(None).loop())[1]
