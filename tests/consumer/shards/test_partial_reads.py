"""A task that Spark ends before it has read everything."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import Any

import pytest

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol.batch_writes import Range
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.kinesis.client import Records
from sluice_consumer.shards.bind import Task
from sluice_consumer.shards.collect import RecordColumnSet, RecordSlice
from sluice_consumer.shards.ranges import BoundRange, Fetched, FetchRequest, Limits
from sluice_consumer.spark import batch_reader
from sluice_consumer.spark.arrow import ENOUGH
from sluice_consumer.spark.batch_read import BatchRead, Group
from sluice_consumer.spark.batch_reader import BatchReader
from sluice_lab.fakes.table import MemoryTable

PATIENCE = 30.0  # seconds, of a test that would hang


@dataclass
class Source:
    """One shard is read at once, and is worth a batch of its own; the other is read when somebody lets it be."""

    go_on: threading.Event = field(default_factory=threading.Event)
    replayed: list[str] = field(default_factory=list)

    def fetch(self, place: FetchRequest, _limits: Limits) -> Fetched:
        if place.shard_id == "slow":
            assert self.go_on.wait(PATIENCE)
        return self._fetched(place.shard_id)

    def replay(self, bound: BoundRange) -> Fetched:
        self.replayed.append(bound.shard_id)
        return self._fetched(bound.shard_id)

    def _fetched(self, shard: str) -> Fetched:
        numbers = [str(1000 + n) for n in range(ENOUGH)]
        columns = RecordColumnSet([RecordSlice(Records(numbers, ["key"] * ENOUGH, [b""] * ENOUGH, [0] * ENOUGH))])
        return Fetched(shard, TRIM_HORIZON, Position.after(numbers[-1]), columns, numbers[0], ENOUGH, ENOUGH, 1000)


class Bench:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.source = CheckpointStore(MemoryTable()), Source()
        for shard in ("fast", "slow"):
            self.store.put_new(ShardRow(shard, TRIM_HORIZON, TRIM_HORIZON, generation=4, batch=5).to_item())
        task = Task(Epoch(4, ""), 6, TaskAttempt("4.0.0", 2), Limits(10, 100), PATIENCE, lambda _seconds: None)
        monkeypatch.setattr(BatchReader, "_ports", lambda _: (self.store, self.source, task))
        monkeypatch.setattr(batch_reader, "wait", self._wait)
        self.task = task

    def _wait(self, futures: Any) -> None:
        """The task is over; only now does Kinesis answer about the slow shard."""
        self.source.go_on.set()
        wait(futures)

    def take(self) -> int:
        """Reads as `take` does: the first rows, then no more; how many they were."""
        identity = StreamIdentity("s", "arn", 1, 1, "ACTIVE")
        batch = BatchRead(StreamAddress("s", "r"), None, "t", identity, 4, 6, PATIENCE, Limits(10, 100), (("fast", "slow"),))
        rows: Any = BatchReader(batch).read(Group(("fast", "slow")))
        found = next(rows).num_rows
        rows.close()
        return int(found)


def test_a_shard_that_nobody_waits_for_any_more_is_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its range would be committed though Spark never saw it, or end the epoch between the last look at the rows and the close."""
    bench = Bench(monkeypatch)
    assert bench.take() == ENOUGH
    assert {row.id: row.batch for row in bench.store.shards().values()} == {"fast": 6, "slow": 5}


def test_a_task_that_is_over_does_not_wait_out_the_lease_of_its_former_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would be emitted after that; the worker is free at once."""
    bench = Bench(monkeypatch)
    range_ = Range("slow", TRIM_HORIZON, Position.after("1999"), "1000", ENOUGH)
    assert bench.store.bind(bench.task.epoch, 6, range_, TaskAttempt("4.0.0", 1)) is None
    assert bench.take() == ENOUGH
    assert bench.source.replayed == []
