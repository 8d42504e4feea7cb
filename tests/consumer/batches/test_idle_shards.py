"""Idle shards cost nothing (docs/protocol.md, "Idle shards"): what a batch writes, reads and runs, counted over the real loop and reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_consumer.batches import bootstrap, planner
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.loop import Loop, LoopTimings
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.config import BatchConfig, StartConfig
from sluice_consumer.driver_report import DriverReport
from sluice_consumer.kinesis.pacing import CALLS_PER_SECOND
from sluice_consumer.metrics.progress import BatchProgress
from sluice_consumer.metrics.warnings import Warnings
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.probes import MOST_PROBES, KinesisProber, ProbeScheduler
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.shards.reader import ShardReader
from sluice_lab.fakes.kinesis import MemoryKinesis
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

CORES = 2
NOW = 1_700_000_000.0


@dataclass
class Costs:
    """What was done for one batch, from the end of the one before."""

    writes: int = 0
    reads: int = 0
    tasks: int = 0
    probes: int = 0
    records: int = 0


@dataclass
class Running:
    """A consumer that runs for some turns of its loop, in virtual time; `busy` shards get a record before each."""

    shards: int
    busy: int
    turns: int = 6
    interval: float = 5.0
    until: RunEnd | None = None
    now: float = NOW
    batches: list[Costs] = field(default_factory=list)
    before: Callable[[Running, int], None] = lambda _self, _turn: None
    told: list[int | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stream = MemoryStream("s", self.shards, now=lambda: round(self.now * 1000))
        self.table, self.kinesis = MemoryTable(), MemoryKinesis(self.stream)
        self.store = CheckpointStore(self.table)
        bootstrap.prepare(self.store, bootstrap.Seed("p", "id", self.stream.describe(), self.stream.list_shards()), StartConfig())
        row = self.store.consumer()
        assert row is not None
        taken = self.store.take(row, row)
        assert taken is not None
        self.consumer = Consumer(self.store, self.stream, Epoch(taken.generation, taken.token))
        self.consumer.begin()
        self.costs, self._turn = Costs(), 0
        self.table.hook = self._counted
        self.reader = ShardReader(MemoryKinesis(self.stream), self.stream, self.stream.describe())

    def _counted(self, when: str, operation: str, argument: Any) -> None:
        if when == "before" and operation in {"write", "transact"}:
            self.costs.writes += 1
        elif when == "before":
            self.costs.reads += len(argument) if operation == "batch_get" else 1

    def run(self, plan: BatchPlan) -> None:
        groups = planner.deal(plan.rows, CORES, BatchConfig.shards_per_task)
        self.costs.tasks = len(groups)
        for number, group in enumerate(groups):
            attempt = TaskAttempt(f"1.{plan.number}.{number}", 1)
            task = Task(
                self.consumer.epoch, plan.number, attempt, Limits(100, 2**20, self.until.millis if self.until else None), 12.0, lambda _seconds: None
            )
            for row in self.store.read(shard.id for shard in group).values():
                read_shard(self.store, self.reader, task, row)

    def probe(self, rows: Any) -> dict[str, bool]:
        before = len(self.kinesis.calls)
        found = self.probes(rows)
        self.costs.probes += Counter(self.kinesis.calls[before:])["GetRecords"]
        return found

    def is_set(self) -> bool:
        self._turn += 1
        for shard in list(self.stream.shards)[: self.busy]:
            if not self.stream.shards[shard].shard.closed:
                self.stream.put_in(shard, b"x")
        self.before(self, self._turn)
        return self._turn > self.turns

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False

    def _told(self, committed: Committed | None, _seconds: float) -> None:
        self.told.append(None if committed is None else committed.records)
        if committed is not None:
            self.costs.records = committed.records
            self.batches.append(self.costs)
            self.costs = Costs()

    def loop(self) -> Running:
        self.probes = ProbeScheduler(lambda row: KinesisProber(self.kinesis, row.id, row.end), lambda: self.now)
        timings = LoopTimings(self.interval, self.until, self.probe, self._told, lambda: None, lambda: self.now)
        Loop(self.consumer, self, timings, cast("Any", self)).run()
        return self


def test_a_thousand_shards_of_which_ten_are_busy_cost_what_ten_shards_cost() -> None:
    many, few = Running(1000, busy=10).loop(), Running(10, busy=10).loop()
    assert (many.batches[0].writes, many.batches[0].reads, many.batches[0].tasks) == (1001, 2000, 1000 // BatchConfig.shards_per_task)
    for with_idle, alone in zip(many.batches[1:], few.batches[1:], strict=True):
        assert with_idle.writes == alone.writes == 10 + 1
        assert with_idle.reads == alone.reads == 2 * 10
        assert with_idle.tasks == alone.tasks == CORES
        assert (with_idle.records, alone.probes) == (10, 0)
    assert [costs.probes for costs in many.batches[1:]] == [MOST_PROBES] * 5


def test_probes_before_a_batch_are_bounded_and_each_idle_shard_has_its_turn() -> None:
    """With 1,210 shards three batches probe all that are left out; a record waits for three of them at most, wherever it is."""
    late = [9, 500, 1209]

    def before(running: Running, turn: int) -> None:
        if turn == 6:
            for number in late:
                running.stream.put_in(list(running.stream.shards)[number], b"late")

    running = Running(1210, busy=1, turns=10, before=before).loop()
    assert all(costs.probes <= MOST_PROBES + len(late) for costs in running.batches[4:]), "and a first probe where one brought something"
    assert sum(costs.records - 1 for costs in running.batches[5:8]) == len(late)
    assert running.batches[-1].writes == 2


@pytest.mark.parametrize("interval", [0.0, 0.1])
def test_an_idle_shard_is_probed_five_times_a_second_at_most_however_short_the_interval(interval: float) -> None:
    running = Running(3, busy=1, turns=40, interval=interval).loop()
    seconds = running.now - NOW
    assert sum(costs.probes for costs in running.batches) <= 2 * (seconds * CALLS_PER_SECOND + 1)
    assert {costs.writes for costs in running.batches[1:]} == {2}


def test_a_record_in_an_idle_shard_is_in_the_next_batch() -> None:
    """It is probed right before each batch: no later than without the rule."""

    def before(running: Running, turn: int) -> None:
        if turn == 4:
            running.stream.put_in(list(running.stream.shards)[7], b"late")

    running = Running(8, busy=2, before=before).loop()
    assert [costs.records for costs in running.batches] == [2, 2, 2, 3, 2, 2]
    assert [costs.writes for costs in running.batches[1:]] == [3, 3, 4, 3, 3], "with its record; that nothing follows is for a probe to say"


def test_a_shard_that_ends_while_it_is_left_out_is_read_to_its_end_and_its_children_follow() -> None:
    ended: list[str] = []

    def before(running: Running, turn: int) -> None:
        if turn == 3:
            ended.append(list(running.stream.shards)[3])
            for child in running.stream.split(ended[0]):
                running.stream.put_in(child, b"child")

    running = Running(4, busy=1, before=before, turns=7).loop()
    assert [costs.records for costs in running.batches] == [1, 1, 1, 3, 1, 1, 1]
    assert running.store.shards()[ended[0]].end.at == "END"


def test_every_shard_is_refreshed_once_an_hour() -> None:
    """Else a shard that is idle for a day looks as if its records had expired unread."""
    running = Running(20, busy=1, turns=10, interval=900.0).loop()
    writes = [costs.writes for costs in running.batches]
    assert writes == [21, 2, 2, 2, 2, 21, 2, 2, 2, 2]
    oldest = min(row.read_to for row in running.store.shards().values())
    assert running.now * 1000 - oldest < planner.STALE_MILLIS + 2 * 900_000


def test_many_idle_shards_are_refreshed_over_the_hour_and_never_many_in_one_batch() -> None:
    """Each once an hour, at the minute that its id says; all at once would make one batch as dear as one of busy shards."""
    running = Running(320, busy=1, turns=32, interval=180.0).loop()
    writes = [costs.writes - 2 for costs in running.batches[2:]]
    assert max(writes) < 100
    assert 280 < sum(writes[-20:]) < 360
    assert sum(count > 0 for count in writes[-20:]) == 5, "a group of about 64 each"
    oldest = min(row.read_to for row in running.store.shards().values())
    assert running.now * 1000 - oldest < planner.STALE_MILLIS + 2 * 180_000


def test_after_a_long_batch_idle_shards_are_refreshed_in_turns_and_the_overdue_at_once() -> None:
    """Nothing ran for an hour and a half: those come first that were read longest ago; what was not read for two hours does not wait for its turn."""
    rows = [ShardRow(f"shardId-{n:012}", TRIM_HORIZON, TRIM_HORIZON, batch=5, read_to=1_000_000_000 + n) for n in range(1000)]
    view = planner.TableView({row.id: row for row in rows}, 5, frozenset())
    late = 1_000_000_000 + planner.STALE_MILLIS * 3 // 2
    assert planner.refreshed(view, late) == {row.id for row in rows[: planner.REFRESHING.most]}
    overdue = 1_000_000_000 + planner.OVERDUE_MILLIS + 501
    assert planner.refreshed(view, overdue) == {row.id for row in rows[:501]}
    assert len(planner.may_be_left_out(view, overdue)) == 499


def test_ready_and_lag_count_shards_that_are_left_out() -> None:
    running = Running(30, busy=3).loop()
    progress = BatchProgress(running.consumer, running.consumer.epoch.generation, Warnings())
    told = progress.onto(DriverReport())
    assert (told.open_shards, told.held_shards, told.ended_shards) == (30, 30, 0)
    assert all(row.behind == 0 for row in running.consumer.view.rows.values())


def test_until_the_tip_reads_every_shard_up_to_the_time_of_the_start() -> None:
    running = Running(6, busy=0, until=RunEnd.tip(round(NOW * 1000)), before=lambda self, _turn: setattr(self, "now", self.now + 1.5))
    for _ in range(250):
        running.stream.put_in(next(iter(running.stream.shards)), b"x")
    running.loop()
    assert [costs.records for costs in running.batches][:3] == [100, 100, 50]
    assert all(row.read_to >= round(NOW * 1000) + 1000 for row in running.store.shards().values())
    assert running.batches[2].writes == 2, "only the shard that is not there yet"


def test_an_idle_consumer_writes_nothing() -> None:
    running = Running(5, busy=0, turns=20).loop()
    assert (running.told, running.costs.writes, running.costs.reads) == ([0, None], 0, 0)
