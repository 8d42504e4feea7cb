from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches import loop, planner
from sluice_consumer.batches.consumer import Committed, Consumer, Engine
from sluice_consumer.batches.loop import FailedBatches, Loop, LoopTimings
from sluice_consumer.batches.planner import BatchPlan, TableView
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.shards.probes import PROBE_SECONDS

ROW = ShardRow("a", Position.after("1"), Position.after("2"), batch=1)


@pytest.fixture
def clock() -> SimpleNamespace:
    return SimpleNamespace(value=1000.0)


@dataclass
class Drain:
    """The event that ends a loop, in virtual time; set after so many waits."""

    clock: SimpleNamespace
    limit: int
    waits: list[float] = field(default_factory=list)

    def is_set(self) -> bool:
        return len(self.waits) >= self.limit

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.clock.value += seconds
        return self.is_set()


class FakeConsumer:
    """Gives batches that a test made: what each brought, or None for no shard at all."""

    listed_millis = 0

    def __init__(self, clock: SimpleNamespace, *batches: ShardRow | None, seconds: float = 0.0, planning: float = 0.0) -> None:
        self.clock, self.batches, self.seconds, self.planning = clock, list(batches), seconds, planning
        self.view = TableView({} if batches[0] is None else {"a": replace(ROW, batch=0)}, 0, frozenset())
        self.audits: list[float] = []
        self.on_audit: Callable[[], None] = lambda: None

    def plan(self, idle: frozenset[str]) -> BatchPlan | None:
        self.clock.value += self.planning
        plan = planner.next_batch(self.view, idle)
        return plan if plan.rows else None

    def run(self, plan: BatchPlan, _engine: object) -> Committed:
        self.clock.value += self.seconds
        batch = self.batches.pop(0) if len(self.batches) > 1 else self.batches[0]
        assert batch is not None
        self.view = TableView({"a": replace(batch, batch=plan.number)}, plan.number, frozenset())
        return Committed(plan.number, (batch,))

    def audit(self) -> None:
        self.audits.append(self.clock.value)
        self.on_audit()


class Bench:
    def __init__(self, clock: SimpleNamespace, consumer: FakeConsumer, waits: int = 3, until: RunEnd | None = None) -> None:
        self.told: list[int | None] = []
        self.begun: list[int] = []
        self.asked = self.rests = 0
        self.folds: list[int] = []
        self.idle: Callable[[], bool] = lambda: True
        self.on_tell: Callable[[], None] = lambda: None
        self.drain = Drain(clock, waits)
        timings = LoopTimings(
            5.0,
            until,
            self._probe,
            self._tell,
            self._rest,
            clock=lambda: clock.value,
            fold=lambda: self.folds.append(len(consumer.audits)),
            watched=self._watched,
        )
        self.loop = Loop(cast("Consumer", consumer), cast("Engine", None), timings, cast("Any", self.drain))

    @contextmanager
    def _watched(self, plan: BatchPlan) -> Iterator[None]:
        self.begun.append(plan.number)
        yield

    def _probe(self, rows: Sequence[ShardRow]) -> dict[str, bool]:
        self.asked += len(rows)
        return {row.id: self.idle() for row in rows}

    def _rest(self) -> None:
        self.rests += 1

    def _tell(self, committed: Committed | None, _seconds: float) -> None:
        self.told.append(None if committed is None else committed.records)
        self.on_tell()


READ = replace(ROW, records=2, readers={"1.0.0": 1}, read_by="1.0.0")


@pytest.mark.parametrize(("seconds", "planning"), [(2.0, 0.0), (0.5, 1.5)])
def test_batches_start_from_trigger_to_trigger(clock: SimpleNamespace, seconds: float, planning: float) -> None:
    """However long the plan takes: probes that have no answer take time."""
    bench = Bench(clock, FakeConsumer(clock, READ, seconds=seconds, planning=planning))
    bench.loop.run()
    assert (bench.drain.waits, bench.told, bench.asked, bench.rests) == ([3.0] * 3, [2] * 3, 0, 0)


def test_a_batch_that_took_longer_than_its_interval_is_followed_at_once(clock: SimpleNamespace) -> None:
    bench = Bench(clock, FakeConsumer(clock, READ, seconds=7.0))
    bench.loop.run()
    assert bench.drain.waits == [0.0] * 3


@pytest.mark.parametrize(
    ("batch", "waited"),
    [
        (replace(READ, behind=1), [1.0]),
        (replace(READ, behind=0), [3.0, 3.0]),
        (replace(READ, records=0, behind=1), [3.0, 3.0]),
    ],
    ids=["it left records of a shard", "all was read", "a shard on its way brought none"],
)
def test_a_full_batch_is_followed_at_once(clock: SimpleNamespace, batch: ShardRow, waited: list[float]) -> None:
    bench = Bench(clock, FakeConsumer(clock, batch, READ, seconds=2.0), waits=len(waited))
    bench.loop.run()
    assert (bench.told, bench.drain.waits) == ([batch.records, 2], waited)


EVERY = {"full", "b", "c"}


def beside_a_full_shard(
    clock: SimpleNamespace,
    interval: float,
    *more: ShardRow,
    began: bool = False,
    isolator: FailedBatches | None = None,
    past: frozenset[str] = frozenset(),
) -> list[tuple[float, set[str]]]:
    """When each batch begins, and its shards.

    `more`: shards that are found during the first. `began`: it was begun before, of the full shard. `past`: shards past the end of the run.
    """
    batches = list[tuple[float, set[str]]]()
    cut = SimpleNamespace(past=lambda _view: past, reads_all=lambda _now: True, is_reached=lambda _view: False)
    rows = {name: replace(READ, id=name, batch=int(began and name == "full"), behind=int(name == "full")) for name in sorted(EVERY)}
    consumer = SimpleNamespace(view=TableView(rows, 0, frozenset()), listed_millis=0, audit=lambda: None)
    rows = rows | {row.id: replace(READ, id=row.id) for row in more}
    found = {row.id: row for row in more}

    def run(plan: BatchPlan, _engine: object) -> Committed:
        batches.append((clock.value - 1000.0, {row.id for row in plan.rows}))
        clock.value += 1.5
        read = {row.id: replace(rows[row.id], batch=plan.number) for row in plan.rows}
        consumer.view = TableView(found | consumer.view.rows | read, plan.number, frozenset())
        return Committed(plan.number, tuple(read.values()))

    consumer.plan = lambda idle: planner.next_batch(consumer.view, idle)
    consumer.run = run
    drain = SimpleNamespace(is_set=lambda: clock.value > 1009, wait=lambda _seconds: 1 / 0)
    until = cast("RunEnd", cut) if past else None
    timings = LoopTimings(interval, until, lambda _rows: {}, lambda *_: None, lambda: None, clock=lambda: clock.value)
    Loop(cast("Consumer", consumer), cast("Engine", None), timings, cast("Any", drain), isolator).run()
    return batches


@dataclass
class Failing:
    """Deals with batches that fail.

    `searches`: batches of the search for a record, each of one shard. `resumes_at`: the batch that failed before; `then`: as many after it.
    """

    searches: int = 0
    resumes_at: int = 0
    then: int = 0
    offered: list[int] = field(default_factory=list)

    @property
    def searching(self) -> bool:
        return self.searches > 0

    def restricted(self, plan: BatchPlan) -> BatchPlan:
        self.offered.append(len(plan.rows))
        return replace(plan, rows=plan.rows[-1:]) if self.searching else plan

    def resumes(self, plan: BatchPlan) -> bool:
        if plan.number != self.resumes_at:
            return False
        self.resumes_at, self.searches = 0, self.then
        return True

    def failed(self, _plan: BatchPlan, error: Exception) -> None:
        raise error

    def passed(self, _committed: Committed) -> None:
        self.searches -= 1


@pytest.mark.parametrize("interval", [0.0, 5.0])
def test_a_shard_that_stays_full_is_read_on_alone_and_the_others_once_an_interval(clock: SimpleNamespace, interval: float) -> None:
    """Else one shard behind would cost a write, two reads and a call of each other shard for each of its batches."""
    alone = {"full"} if interval else EVERY
    batches = beside_a_full_shard(clock, interval)
    assert batches == [(0.0, EVERY), (1.5, alone), (3.0, alone), (4.5, alone), (6.0, EVERY), (7.5, alone), (9.0, alone)]


@pytest.mark.parametrize(("began", "searches"), [(True, 0), (False, 1)], ids=["replay", "search"])
def test_neither_a_replay_nor_a_search_begins_the_interval_of_the_other_shards(clock: SimpleNamespace, began: bool, searches: int) -> None:  # noqa: FBT001
    """Else they are never read where drivers die, or searches come, sooner than that."""
    batches = beside_a_full_shard(clock, 600.0, began=began, isolator=Failing(searches))
    assert batches[:3] == [(0.0, {"full"}), (1.5, EVERY), (3.0, {"full"})]


def test_a_search_is_offered_all_shards_though_one_is_full(clock: SimpleNamespace) -> None:
    """It needs others beside the suspects."""
    beside_a_full_shard(clock, 600.0, isolator=(failing := Failing(resumes_at=2, then=2)))
    assert failing.offered[:4] == [3, 3, 3, 1]


def test_a_batch_that_failed_comes_again_without_the_interval(clock: SimpleNamespace) -> None:
    """Who deals with it has made a pause. Full shards would stand still."""
    batches = beside_a_full_shard(clock, 600.0, isolator=Failing(resumes_at=2))
    assert batches[:3] == [(0.0, EVERY), (1.5, EVERY), (3.0, {"full"})]


def test_beside_a_full_shard_none_takes_part_that_is_past_the_end_of_the_run(clock: SimpleNamespace) -> None:
    child = ShardRow("child", TRIM_HORIZON, TRIM_HORIZON)
    batches = beside_a_full_shard(clock, 600.0, child, past=frozenset({"b", "child"}))
    assert [shards for _, shards in batches[:3]] == [{"full", "c"}, {"full"}, {"full"}]


def test_the_first_batch_after_a_replay_comes_at_once(clock: SimpleNamespace) -> None:
    bench = Bench(clock, consumer := FakeConsumer(clock, READ, READ), waits=2)
    consumer.view = TableView({"a": replace(READ, batch=1)}, 0, frozenset())
    bench.loop.run()
    assert (bench.told, bench.drain.waits) == ([2, 2], [0.0, 5.0])


def test_a_shard_that_nobody_has_read_does_not_wait_for_the_interval(clock: SimpleNamespace) -> None:
    """Such as a child: with a generation an interval, it would fall behind."""
    child = ShardRow("child", TRIM_HORIZON, TRIM_HORIZON)
    assert [shards for _, shards in beside_a_full_shard(clock, 600.0, child)[:3]] == [EVERY, {"full", "child"}, {"full"}]


def test_an_idle_consumer_only_probes(clock: SimpleNamespace) -> None:
    bench = Bench(clock, FakeConsumer(clock, ROW), waits=5)
    bench.loop.run()
    assert (bench.told, bench.asked, bench.rests) == ([0, None], 4, 3)
    assert bench.drain.waits == [5.0, *[PROBE_SECONDS] * 4]
    assert bench.begun == [1], "a batch is said to be open only when one is run"


def test_news_end_the_idling(clock: SimpleNamespace) -> None:
    bench = Bench(clock, FakeConsumer(clock, ROW, READ), waits=3)
    bench.idle = lambda: bench.asked != 2
    bench.loop.run()
    assert bench.told == [0, None, 2]
    assert bench.drain.waits == [5.0, PROBE_SECONDS, 5.0]


def test_a_consumer_that_idles_again_says_so_again(clock: SimpleNamespace) -> None:
    bench = Bench(clock, FakeConsumer(clock, ROW), waits=6)
    bench.idle = lambda: bench.asked != 3
    bench.loop.run()
    assert bench.told == [0, None, 0, None]


@pytest.mark.parametrize("batch", [replace(ROW, records=2), replace(ROW, behind=1)], ids=["records", "a shard far from its tip"])
def test_a_consumer_is_not_idle_after(clock: SimpleNamespace, batch: ShardRow) -> None:
    """There may be more at once, and nobody probes first."""
    bench = Bench(clock, FakeConsumer(clock, batch), waits=2)
    bench.loop.run()
    assert (None not in bench.told, bench.asked) == (True, 0)


def test_a_shard_that_had_no_turn_to_be_probed_is_at_the_tip_as_its_range_said(clock: SimpleNamespace) -> None:
    """A batch that reads it would make more calls than the probe that it may not have yet."""
    bench = Bench(clock, FakeConsumer(clock, ROW), waits=2)
    bench.loop._timings = replace(bench.loop._timings, probe=lambda _rows: {})
    bench.loop.run()
    assert bench.told == [0, None]


GOAL = 1500
TIP = RunEnd.tip(500)
EMPTY = replace(ROW, end=ROW.start, readers={"1.0.0": 1}, read_by="1.0.0")


def test_until_the_tip_ends_though_records_keep_coming(clock: SimpleNamespace) -> None:
    early, later = replace(READ, read_to=GOAL - 1, behind=7), replace(READ, read_to=GOAL + 300, behind=7)
    bench = Bench(clock, FakeConsumer(clock, early, early, later), waits=9, until=TIP)
    bench.loop.run()
    assert (bench.told, bench.drain.waits, bench.asked) == ([2, 2, 2], [], 0)


def test_until_the_tip_goes_on_when_a_batch_brought_nothing(clock: SimpleNamespace) -> None:
    """Nobody has read the shard up to the time of the start: `process` did not read, or the shard is sparse."""
    bench = Bench(clock, FakeConsumer(clock, EMPTY, replace(EMPTY, read_to=GOAL)), waits=9, until=TIP)
    bench.loop.run()
    assert bench.told == [0, 0]


def test_until_the_tip_does_not_end_while_a_shard_that_is_idle_keeps_another_one_waiting(clock: SimpleNamespace) -> None:
    """The parent has ended, but nobody has seen that yet: its child, found by an audit, is to be read first."""
    consumer = FakeConsumer(clock, replace(READ, read_to=GOAL))
    bench = Bench(clock, consumer, waits=3, until=TIP)
    child = replace(ROW, id="b", batch=0, parents=frozenset("a"))
    bench.on_tell = lambda: setattr(consumer, "view", replace(consumer.view, rows=dict(consumer.view.rows) | {"b": child}))
    bench.loop.run()
    assert bench.drain.waits == [5.0] * 3


def test_until_the_tip_ends_when_no_shard_is_left_to_read(clock: SimpleNamespace) -> None:
    bench = Bench(clock, FakeConsumer(clock, None), until=TIP)
    bench.loop.run()
    assert bench.drain.waits == []


def test_a_consumer_without_open_shards_waits_for_shards(clock: SimpleNamespace) -> None:
    bench = Bench(clock, FakeConsumer(clock, None), waits=4)
    bench.loop.run()
    assert (bench.told, bench.asked) == ([None], 0)


def test_shards_are_audited_every_two_minutes_even_while_idle(clock: SimpleNamespace) -> None:
    """KCL's shard sync interval."""
    consumer = FakeConsumer(clock, ROW)
    Bench(clock, consumer, waits=300).loop.run()
    assert consumer.audits == [1121.0, 1242.0]


def test_shards_are_folded_before_the_first_batch_and_after_each_audit(clock: SimpleNamespace) -> None:
    """So a driver that lives for less than two minutes folds, too: the epoch began with an audit."""
    bench = Bench(clock, FakeConsumer(clock, ROW), waits=1)
    bench.loop.run()
    assert bench.folds == [0]
    longer = Bench(clock, FakeConsumer(clock, ROW), waits=300)
    longer.loop.run()
    assert longer.folds == [0, 1, 2]


def test_an_audit_that_finds_a_shard_ends_the_idling(clock: SimpleNamespace) -> None:
    consumer = FakeConsumer(clock, ROW)
    found = replace(ROW, id="b", joins=2, batch=0)
    consumer.on_audit = lambda: setattr(consumer, "view", replace(consumer.view, rows={"a": consumer.view.rows["a"], "b": found}))
    bench = Bench(clock, consumer, waits=int(loop.AUDIT_SECONDS) - 2)
    bench.loop.run()
    assert bench.told == [0, None, 0]
    assert consumer.audits == [1000.0 + loop.AUDIT_SECONDS + 1]


def test_an_audit_that_changes_nothing_goes_on_idling(clock: SimpleNamespace) -> None:
    bench = Bench(clock, FakeConsumer(clock, ROW), waits=2 * int(loop.AUDIT_SECONDS))
    bench.loop.run()
    assert bench.told == [0, None]


def test_a_drain_stops_before_the_next_batch(clock: SimpleNamespace) -> None:
    bench = Bench(clock, FakeConsumer(clock, READ), waits=0)
    bench.loop.run()
    assert bench.told == []
