"""A run that ends at a timestamp delivers exactly what lies in front of the cut of each shard, whatever happens on the way.

The real consumer, loop, probes and reader run in virtual time over the in-memory fakes. Records arrive out of order, shards are split and merged, and
epochs die at their writes. The oracle knows all that was ever put. Each sabotage takes one rule of docs/protocol.md, "Where a run ends", out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_checkpoints.position import END
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_consumer.batches import bootstrap
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.loop import Loop, LoopTimings
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.config import StartConfig, UntilConfig
from sluice_consumer.shards import ranges
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.probes import KinesisProber, ProbeScheduler
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.shards.reader import ShardReader
from sluice_lab.fakes.kinesis import FakeBehaviour, MemoryKinesis
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

NOW = 1_700_000_000
PATIENCE = 400  # turns of a loop
UNTIL = (NOW + 30) * 1000


class Died(Exception):
    """An epoch is over, in the middle of a write."""


@dataclass
class World:
    """A stream with a log of what was put, and a table.

    `jitter`: by how much the clocks of the service differ, milliseconds. `start_seconds`: from a plan to the first read of its batch.
    """

    shards: int = 2
    now: float = NOW
    jitter: int = 0
    start_seconds: float = 0.0
    keeps_coming: bool = False  # records, one a shard in each batch
    behaviour: FakeBehaviour = field(default_factory=FakeBehaviour)
    log: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)
    delivered: dict[str, dict[int, list[bytes]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    batches: int = 0
    waited_after: list[int] = field(default_factory=list)
    epochs: int = 0
    dies_at: int | None = None
    unread: bool = False  # `process` returns without having read its batch, unless it was bound before: then that is refused

    def __post_init__(self) -> None:
        self.stream = MemoryStream("s", self.shards, now=lambda: round(self.now * 1000) + self.jitter)
        self.table = MemoryTable()
        self.store = CheckpointStore(self.table)
        self.table.hook = self._writes

    def _writes(self, when: str, operation: str, _argument: Any) -> None:
        if when == "after" and operation in {"write", "transact"} and self.dies_at is not None:
            self.dies_at -= 1
            if self.dies_at <= 0:
                self.dies_at = None
                raise Died

    @property
    def open_shards(self) -> list[str]:
        return [shard for shard, held in self.stream.shards.items() if not held.shard.closed]

    def put(self, number: int, jitter: int = 0) -> None:
        shard = self.open_shards[number % len(self.open_shards)]
        self.jitter = jitter
        self.log.setdefault(shard, []).append((self.stream.now(), data := b"%d" % sum(map(len, self.log.values()))))
        self.stream.put_in(shard, data)
        self.jitter = 0

    def reshard(self, number: int) -> None:
        """Splits an open shard, or merges the first two if they are neighbours."""
        shards = self.open_shards
        ranges = [self.stream.shards[shard].shard for shard in shards[:2]]
        if number % 2 and len(ranges) > 1 and ranges[0].ending_hash + 1 == ranges[1].starting_hash:
            self.stream.merge(*shards[:2])
        else:
            self.stream.split(shards[number % len(shards)])

    def epoch(self, until: UntilConfig | None, turns: int = PATIENCE) -> bool:
        """One epoch, to the end of its run, for so many turns of its loop, or to its death. Whether it reached the end."""
        self.epochs += 1
        prepared = bootstrap.Seed(f"p{self.epochs}", "id", self.stream.describe(), self.stream.list_shards())
        try:
            bootstrap.prepare(self.store, prepared, StartConfig())
            row = self.store.consumer()
            assert row is not None
            taken = self.store.take(row, replace(row, token=f"t{row.generation}"))
            assert taken is not None
            return Run(self, Epoch(taken.generation, taken.token), until, turns).loop()
        except Died:
            return False

    def expected(self, until: int) -> dict[str, list[bytes]]:
        """What lies in front of the cut of each shard whose ancestors all ended in front of it."""
        return {shard: owed for shard in self.log if self._is_read(shard, until) and (owed := self._owed(shard, until))}

    def _owed(self, shard: str, until: int) -> list[bytes]:
        log = self.log.get(shard, [])
        at = next((i for i, (arrival, _) in enumerate(log) if arrival >= until), len(log))
        return [data for _, data in log[:at]]

    def _is_read(self, shard: str, until: int) -> bool:
        parents = self.stream.shards[shard].shard.parents
        return all(len(self._owed(parent, until)) == len(self.log.get(parent, [])) and self._is_read(parent, until) for parent in parents)

    def got(self) -> dict[str, list[bytes]]:
        return {shard: [data for number in sorted(by) for data in by[number]] for shard, by in self.delivered.items() if any(by.values())}


class Run:
    def __init__(self, world: World, epoch: Epoch, until: UntilConfig | None, turns: int) -> None:
        self.world, self.turns = world, turns
        self.consumer = Consumer(world.store, world.stream, epoch)
        self.consumer.begin()
        self.end = RunEnd.of(until, self.consumer.listed_millis)
        self.kinesis = MemoryKinesis(world.stream, world.behaviour)
        self.reader = ShardReader(self.kinesis, world.stream, world.stream.describe())

    def run(self, plan: BatchPlan) -> None:
        self.world.batches += 1
        if self.world.unread and not plan.replay:
            return
        self.world.now += self.world.start_seconds
        for number in range(len(self.world.open_shards) if self.world.keeps_coming else 0):
            self.world.put(number)
        epoch, limits = self.consumer.epoch, Limits(3, 2**20, self.end.millis if self.end else None)
        task = Task(epoch, plan.number, TaskAttempt(f"{epoch.generation}.0.0", 1), limits, 12.0, lambda _seconds: None)
        for row in self.world.store.read(shard.id for shard in plan.rows).values():
            fetched = read_shard(self.world.store, self.reader, task, row)
            self.world.notes += [fetched.note] if fetched.note else []
            data = fetched.columns.data
            before = self.world.delivered.setdefault(row.id, {}).setdefault(plan.number, data)
            assert before == data, "a batch that comes again has the same records"

    def is_set(self) -> bool:
        self.turns -= 1
        return self.turns < 0

    def wait(self, seconds: float) -> bool:
        self.world.waited_after.append(self.world.batches)
        self.world.now += seconds
        return False

    def loop(self) -> bool:
        probes = ProbeScheduler(lambda row: KinesisProber(self.kinesis, row.id, row.end), lambda: self.world.now)
        timings = LoopTimings(1.0, self.end, probes, lambda *_: None, lambda: None, lambda: self.world.now)
        Loop(self.consumer, self, timings, cast("Any", self)).run()
        return self.turns >= 0


AT = UntilConfig(timestamp="2023-11-14T22:13:50Z")


def test_the_timestamp_is_read_as_it_is_written() -> None:
    assert AT.millis == UNTIL


def filled(*, jitter: int = 0) -> World:
    """Records until a minute after the timestamp, one every two seconds in each of two shards."""
    world = World()
    for turn in range(60):
        world.put(turn, jitter if turn % 5 == 0 else 0)
        world.now += 1
    return world


def test_a_run_that_is_started_again_after_its_end_ends_at_once() -> None:
    world = filled()
    assert world.epoch(AT)
    batches, got = world.batches, world.got()
    assert world.epoch(AT)
    assert (world.batches, world.got()) == (batches, got)


@pytest.mark.parametrize(("until", "waits"), [(AT, []), (UntilConfig(tip=True), [10])])
def test_a_run_with_an_end_waits_only_after_a_batch_that_reached_the_tip_and_not_after_its_last(until: UntilConfig, waits: list[int]) -> None:
    world = filled()
    world.now += 200
    assert world.epoch(until)
    assert world.waited_after == waits
    assert world.batches not in waits


def test_what_comes_after_the_end_of_a_run_stays_unread() -> None:
    world = filled()
    assert world.epoch(AT)
    assert world.got() == world.expected(UNTIL)
    assert not world.epoch(None, turns=20)
    assert {shard: [data for _, data in log] for shard, log in world.log.items()} == world.got()


def test_a_later_timestamp_continues_at_the_cut_and_an_earlier_one_ends_at_once() -> None:
    world = filled()
    assert world.epoch(AT)
    assert world.epoch(UntilConfig(timestamp="2023-11-14T22:13:40Z"))
    assert world.got() == world.expected(UNTIL)
    assert world.epoch(UntilConfig(timestamp="2023-11-14T22:14:00Z"))
    assert world.got() == world.expected(UNTIL + 10_000)


def test_before_its_timestamp_a_run_is_idle_as_any_other() -> None:
    world = World(shards=4)
    assert not world.epoch(UntilConfig(timestamp="2023-11-15T22:13:50Z"), turns=60)
    assert world.batches <= 2


def test_a_run_until_the_tip_takes_the_tip_of_its_own_start() -> None:
    world = filled()
    world.now += 2
    assert world.epoch(UntilConfig(tip=True))
    assert {shard: [data for _, data in log] for shard, log in world.log.items()} == world.got()


def test_a_child_that_begins_after_the_timestamp_is_not_read_and_one_that_begins_before_it_is() -> None:
    """The split of a shard that is cut leaves its children waiting; the run does not wait for them."""
    world = World()
    world.put(0)
    world.reshard(0)
    for _ in range(20):
        for shard in range(3):
            world.put(shard)
        world.now += 3
    world.reshard(0)
    for shard in range(4):
        world.put(shard)
    world.now += 300
    assert world.epoch(AT)
    rows = {row.id: row for row in world.store.shards().values()}
    assert world.got() == world.expected(UNTIL)
    assert len(rows) > len([row for row in rows.values() if row.batch])  # rows of shards that nobody read
    assert sum(row.end == END for row in rows.values()) == 1


EARLIER, LATER, TIP = UntilConfig(timestamp="2023-11-14T22:13:40Z"), UntilConfig(timestamp="2023-11-14T22:14:20Z"), UntilConfig(tip=True)
ONE_END: tuple[UntilConfig | None, ...] = (AT,)
ANY_END: tuple[UntilConfig | None, ...] = (AT, None, TIP, LATER, EARLIER)


def scenario(world: World, script: list[tuple[int, int]], ends: tuple[UntilConfig | None, ...] = ONE_END) -> None:
    """What happens to a stream, with an epoch here and there, which may die, or leave batches unread; its run ends at one of `ends`, or nowhere."""
    for what, number in script:
        if what <= 5:
            world.put(number, jitter=(-3000, 0, 0, 2500)[number % 4])
        elif what == 6:
            world.reshard(number)
        elif what in {7, 10}:
            world.dies_at, world.unread = 1 + number if what == 7 else None, number > 10
            world.epoch(ends[number % len(ends)], turns=1 + number % 4)
            world.dies_at, world.unread = None, False
        else:
            world.now += number * (10 if what == 9 and ends is ANY_END else 1)


SCRIPTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=60)
MOVED = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 12)), max_size=60)
BEHAVIOURS = st.builds(
    FakeBehaviour,
    child_shards=st.booleans(),
    end_with_records=st.booleans(),
    empty_pages=st.sampled_from((0, 0, 1, 30)),
    page_records=st.sampled_from((1, 2, 10_000)),
    from_newest=st.booleans(),
)


def outcome(script: list[tuple[int, int]]) -> None:
    """After all of it, the run ends by itself within a bounded number of turns, and delivered exactly what it owes."""
    world = World()
    scenario(world, script)
    world.now = max(world.now, NOW + 30)
    assert world.epoch(AT), "the run has no end"
    # The clocks of this service differ by three seconds: a child may hold an earlier arrival than its parent, which `expected` leaves out, too.
    assert world.got() == world.expected(UNTIL)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(SCRIPTS)
def test_whatever_happens_a_run_delivers_what_lies_in_front_of_its_cuts(script: list[tuple[int, int]]) -> None:
    """Deaths at any write, splits, merges, arrivals out of order, epochs before the timestamp."""
    outcome(script)


def missed(world: World, until: int) -> dict[str, list[bytes]]:
    got = world.got()
    return {shard: left for shard, owed in world.expected(until).items() if (left := [data for data in owed if data not in got.get(shard, [])])}


def in_order(world: World) -> Mapping[str, list[bytes]]:
    return {shard: [data for _, data in world.log[shard][: len(data)]] for shard, data in world.got().items()}


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(MOVED, BEHAVIOURS, st.sampled_from([AT, TIP]))
def test_whatever_a_consumer_has_read_a_run_with_another_end_misses_nothing(
    script: list[tuple[int, int]], behaviour: FakeBehaviour, end: UntilConfig
) -> None:
    """Epochs without an end, until the tip, until an earlier or a later timestamp, and some that read nothing; then one to the end."""
    world = World(behaviour=behaviour)
    scenario(world, script, ANY_END)
    world.now = max(world.now, NOW + 30)
    until = UNTIL if end is AT else RunEnd.tip(round(world.now * 1000)).millis
    assert world.epoch(end), "the run has no end"
    assert not missed(world, until)
    assert world.got() == in_order(world)


def late_record() -> None:
    """A record becomes readable a second after the timestamp, and arrived a second before it."""
    world = World(shards=1)
    world.now = NOW + 30.5
    world.epoch(AT, turns=3)
    world.now += 1
    world.put(0, jitter=UNTIL - 1000 - round(world.now * 1000))
    assert world.epoch(AT)
    assert world.got() == world.expected(UNTIL)


def late_record_after_another() -> None:
    """The same; who was at the tip in between had no end."""
    world = World(shards=1)
    world.now = NOW + 31
    world.epoch(None, turns=1)
    world.put(0, jitter=-3000)
    assert world.epoch(AT)
    assert world.got() == world.expected(UNTIL)


def out_of_order() -> None:
    """An earlier arrival lies behind the cut."""
    world = filled(jitter=-9000)
    assert world.epoch(AT)
    assert world.got() == world.expected(UNTIL)


def closed_before_the_timestamp() -> None:
    """A shard ended in front of the timestamp, and its child has records, too. The run begins long after."""
    world = World(shards=1)
    world.put(0)
    world.reshard(0)
    world.put(0)
    world.put(1)
    world.now += 300
    assert world.epoch(AT)
    assert world.got() == world.expected(UNTIL)
    assert len(world.got()) == 3


def closed_before_the_start() -> None:
    """A shard was split a moment before a run until the tip; the listings that it begins with do not know it yet."""
    world = World(shards=1, start_seconds=2.5)
    world.put(0)
    listed, fresh = world.stream.list_shards(), world.stream.list_shards
    world.reshard(0)
    world.put(0)
    world.put(1)
    world.stream.list_shards = lambda: listed if world.now < NOW + 2 else fresh()  # type: ignore[method-assign]
    assert world.epoch(TIP)
    assert len(world.got()) == 3


def records_keep_coming() -> None:
    """A run until the tip ends all the same, in front of what came after its start."""
    world = filled()
    world.keeps_coming, until = True, RunEnd.tip(round(world.now * 1000)).millis
    assert world.epoch(TIP)
    assert world.got() == world.expected(until)


def read_at_the_tip(*, unread: int = 0) -> World:
    """A shard was closed in front of the timestamp. A driver without an end reads its last records long after it, and nothing more."""
    world = World(shards=1)
    world.put(0)
    world.reshard(0)
    world.put(0)
    world.put(1)
    world.now += 300
    world.epoch(None, turns=1)
    world.unread = True
    world.epoch(None, turns=unread)
    world.unread = False
    return world


def read_beyond() -> None:
    """The next driver has an end. Nobody knows yet that the shard was closed; its children have records in front of the cut."""
    world = read_at_the_tip()
    assert world.epoch(AT)
    assert world.got() == world.expected(UNTIL)


def not_read_since() -> None:
    """Then `process` does not read its batch: the range after the last records is closed without having been read."""
    world = read_at_the_tip(unread=2)
    assert world.epoch(AT)
    assert world.got() == world.expected(UNTIL)


def not_read_since_and_come_again() -> None:
    """The same, and the driver dies at any of its writes: the batch comes again, and whoever emits it registers in the row."""
    for writes in range(1, 10):
        world = read_at_the_tip()
        world.unread, world.dies_at = True, writes
        world.epoch(None, turns=1)
        world.unread, world.dies_at = False, None
        assert world.epoch(AT)
        assert world.got() == world.expected(UNTIL)


def cut_after_the_tip() -> None:
    """A driver without an end was at the tip after the timestamp, with a record. The next one is behind the cut, and the run ends."""
    for seconds in (40, 200):
        world = World(shards=1)
        world.put(0)
        world.now += seconds
        world.epoch(None, turns=1)
        world.put(0)
        assert world.epoch(AT)
        assert world.got() == world.expected(UNTIL)


def on_the_way() -> None:
    """A driver without an end was at the tip of a closed shard, lost its iterator, and then met with empty replies only."""
    world = read_at_the_tip(unread=2)
    world.behaviour = FakeBehaviour(empty_pages=30)
    world.epoch(None, turns=1)
    assert world.epoch(AT)
    assert world.got() == world.expected(UNTIL)


def on_the_way_and_closed() -> None:
    """The same, and then `process` does not read a batch again."""
    world = read_at_the_tip(unread=2)
    world.behaviour = FakeBehaviour(empty_pages=30)
    world.epoch(None, turns=1)
    world.unread = True
    world.epoch(None, turns=2)
    world.unread = False
    world.behaviour = FakeBehaviour()
    assert world.epoch(AT)
    assert world.got() == world.expected(UNTIL)


DAY = 86_400


def continued(world: World) -> None:
    """The run goes on without its end, which is a day ago by then. Nothing expired, and nothing is suspected."""
    world.now = max(world.now, NOW + 30 + DAY + 600)
    assert not world.epoch(None, turns=8)
    assert world.got() == {shard: [data for _, data in log] for shard, log in world.log.items()}
    assert world.notes == []


def nothing_was_put_after_the_timestamp() -> None:
    """For an hour; then records came, behind the cut."""
    world = World(shards=1)
    world.put(0)
    world.now += 3600
    world.put(0)
    assert world.epoch(AT)
    continued(world)


def at_the_tip_before_the_timestamp() -> None:
    """A run stops two hours after its timestamp, at the tip, with the last records."""
    world = World(shards=1)
    world.put(0)
    world.now += 7200
    world.epoch(AT, turns=1)
    continued(world)


def test_a_run_that_goes_on_without_its_end_suspects_no_loss_where_there_is_none() -> None:
    nothing_was_put_after_the_timestamp()
    at_the_tip_before_the_timestamp()


def cut_by_another() -> None:
    """A run until an earlier timestamp made its cut where a driver without an end had been at the tip; a late record lies between the two."""
    world = World(shards=1)
    world.put(0)
    world.now += 40
    world.epoch(None, turns=1)
    world.put(0, jitter=-15_000)
    assert world.epoch(EARLIER)
    assert world.epoch(AT)
    assert world.got() == world.expected(UNTIL)


def test_children_are_read_whatever_end_the_driver_before_had() -> None:
    for before in (None, TIP, LATER):
        for turns in range(1, 6):
            world = World(shards=1)
            for turn in range(22):
                world.put(turn)
                world.now += 1
                if turn == 1:
                    world.reshard(0)
            world.now = NOW + 100
            world.epoch(before, turns=turns)
            world.now += 20
            assert world.epoch(AT)
            assert not missed(world, UNTIL)


Witness = Callable[[], None]
Patch = Callable[[pytest.MonkeyPatch], None]
SABOTAGES: dict[str, tuple[Patch, Witness]] = {}


def sabotage(rule: str, witness: Witness) -> Callable[[Patch], Patch]:
    def register(patch: Patch) -> Patch:
        SABOTAGES[rule] = (patch, witness)
        return patch

    return register


@sabotage("a run until the tip has a cut", records_keep_coming)
@sabotage("the cut comes before the bind", test_what_comes_after_the_end_of_a_run_stays_unread)
def no_cut(patch: pytest.MonkeyPatch) -> None:
    """Ranges go on as if there were no end."""
    patch.setattr(ranges, "before", lambda records, _until: len(records))


@sabotage("what lies behind the cut is not delivered, whatever its arrival", out_of_order)
def filtered(patch: pytest.MonkeyPatch) -> None:
    """A range ends behind the last record of a reply that arrived before the timestamp."""

    def before(records: Any, until: int | None) -> int:
        return max((i + 1 for i, arrival in enumerate(records.arrival_millis) if until is None or arrival < until), default=0)

    patch.setattr(ranges, "before", before)


def at_once(patch: pytest.MonkeyPatch) -> None:
    """The end is settled when it comes."""
    real = RunEnd.of
    patch.setattr(RunEnd, "of", lambda until, listed: (end := real(until, listed)) and replace(end, settled_millis=0))


@sabotage("the tip is past the timestamp a while after it only", late_record)
def unsettled(patch: pytest.MonkeyPatch) -> None:
    """An empty reply at the timestamp is believed."""
    at_once(patch)


@sabotage("after records the tip says nothing, of the tip either", closed_before_the_start)
@sabotage("after records the tip says nothing", read_beyond)
def hasty(patch: pytest.MonkeyPatch) -> None:
    """A closed shard that has yet to say its end is taken for past the timestamp, and its children are not read."""
    patch.setattr(ShardRow, "is_empty", True)


@sabotage("a range that nobody read says nothing", not_read_since)
def closed(patch: pytest.MonkeyPatch) -> None:
    """Its `readTo` is that of the range before, which had records."""
    patch.setattr(ShardRow, "was_open", property(lambda row: row.is_empty and not row.behind))


@sabotage("whoever emits a range again has not read it", not_read_since_and_come_again)
def registered(patch: pytest.MonkeyPatch) -> None:
    """A row that was closed unread counts as read once its batch comes again."""
    patch.setattr(ShardRow, "was_read", property(lambda row: bool(row.readers)))


@sabotage("a range that nobody read says nothing, far from the tip either", on_the_way_and_closed)
def closed_on_the_way(patch: pytest.MonkeyPatch) -> None:
    """It leaves no iterator, and the `readTo` of the range before."""
    patch.setattr(ShardRow, "is_cut", property(lambda row: row.behind > 0 and row.iterator is None))


@sabotage("a range that ends at a cut says so, whatever was read before", cut_after_the_tip)
def behind_says_nothing(patch: pytest.MonkeyPatch) -> None:
    """Only a tip counts, and this shard is never at the tip."""
    patch.setattr(ShardRow, "is_cut", False)


@sabotage("a range that is on the way says nothing", on_the_way)
def on_the_way_says_so(patch: pytest.MonkeyPatch) -> None:
    """Its `readTo` is that of the range before, which had records."""
    patch.setattr(ShardRow, "is_cut", property(lambda row: row.behind > 0))


@sabotage("a range that ends in front of a record says when that or its last one arrived, whatever the tip was before", cut_by_another)
def any_cut(patch: pytest.MonkeyPatch) -> None:
    """The tip came too early to say anything."""
    real = ShardReader._read_to
    patch.setattr(ShardReader, "_read_to", lambda self, fetched, place: max(real(self, fetched, place), place.read_to))


@sabotage("a cut says when the record behind it arrived", nothing_was_put_after_the_timestamp)
def cut_at_the_timestamp(patch: pytest.MonkeyPatch) -> None:
    """It says the timestamp, and a day later what never came is suspected to have expired."""
    real = ShardReader._completed

    def settled(self: Any, pages: Any, page: Any, limits: Any) -> Any:
        found = real(self, pages, page, limits)
        return replace(found, read_to=limits.until_millis) if found and found.cut else found

    patch.setattr(ShardReader, "_completed", settled)


@sabotage("a task with an end says of the tip what any other says", at_the_tip_before_the_timestamp)
def clamped(patch: pytest.MonkeyPatch) -> None:
    """It says no more than the timestamp, and a day after that a shard that it read minutes ago is suspected."""
    real = ShardReader.fetch

    def fetch(self: Any, place: Any, limits: Any) -> Any:
        found, until = real(self, place, limits), limits.until_millis
        return found if until is None or found.cut else replace(found, read_to=min(found.read_to, max(place.read_to, until - 1)))

    patch.setattr(ShardReader, "fetch", fetch)


@sabotage("whoever read to the tip, it was a while after the timestamp", late_record_after_another)
def read_by_another(patch: pytest.MonkeyPatch) -> None:
    """The tip of a driver without an end is believed at once."""
    at_once(patch)


@sabotage("a shard that is past the timestamp takes part in no batch", test_what_comes_after_the_end_of_a_run_stays_unread)
def none_past(patch: pytest.MonkeyPatch) -> None:
    """It is read for ever."""
    patch.setattr(RunEnd, "past", lambda _self, _view: frozenset())


@sabotage(
    "a run does not wait for children of a shard that is past the timestamp",
    test_a_child_that_begins_after_the_timestamp_is_not_read_and_one_that_begins_before_it_is,
)
def waits_for_children(patch: pytest.MonkeyPatch) -> None:
    """As a run until the tip does."""
    patch.setattr(RunEnd, "is_reached", lambda self, view: {row.id for row in view.opened} <= self.past(view))


@sabotage("idle shards are left out as usual until the timestamp is settled", test_before_its_timestamp_a_run_is_idle_as_any_other)
def busy(patch: pytest.MonkeyPatch) -> None:
    """All shards are read with every batch."""
    patch.setattr(RunEnd, "reads_all", lambda _self, _now: True)


@sabotage("afterwards a shard that is not past the timestamp takes part", late_record)
def lazy(patch: pytest.MonkeyPatch) -> None:
    """An idle shard is never read, so nobody learns that nothing came."""
    patch.setattr(RunEnd, "reads_all", lambda _self, _now: False)


@pytest.mark.parametrize("rule", SABOTAGES)
def test_without_a_rule_a_scenario_fails(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, witness = SABOTAGES[rule]
    witness()
    patch(monkeypatch)
    with pytest.raises(AssertionError):
        witness()
