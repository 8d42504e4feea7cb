"""A crash before and after every write of the isolation, on a real table and a real folder of letters (docs/protocol.md, "Poison")."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from sluice_checkpoints.letters.folder import DiskFolder, letters
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.memory.stream import MemoryStream
from sluice_checkpoints.protocol.isolation_note import noted
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_checkpoints.protocol.table import Outcome, Table, Transaction, Update
from sluice_consumer.batches import bootstrap
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.excluding import ExclusionPorts
from sluice_consumer.batches.isolating import IsolationPorts, Isolator
from sluice_consumer.batches.isolation import BatchFailure, DoubtLimits, Search
from sluice_consumer.batches.loop import Loop, LoopTimings
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.config import StartConfig
from sluice_consumer.kinesis.memory import MemoryKinesis
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.shards.reader import ShardReader

RECORDS = {0: ["a0", "a1", "poison", "a3"], 1: ["b0", "b1"]}
GOOD = {shard: [name for name in names if name != "poison"] for shard, names in RECORDS.items()}
BEFORE, AFTER = "before", "after"
MOST_EPOCHS = 20
AT_ONCE = DoubtLimits(data=0, unknown=0, nothing=0, refused=0)


class Crash(BaseException):
    """The driver's process is gone."""


class Overdue(BaseException):
    """The driver ended because `process` did not."""


@dataclass
class Crashes:
    """Crashes once, at a write of the isolation; counts them."""

    at: int | None = None
    when: str = BEFORE
    seen: list[str] = field(default_factory=list)

    def around(self, name: str, write: Any) -> Any:
        """Makes the write, or crashes on its way."""
        self.seen.append(name)
        here = len(self.seen) - 1 == self.at
        if here and self.when == BEFORE:
            raise Crash
        done = write()
        if here:
            raise Crash
        return done


@dataclass
class Watched:
    """A table of which the writes of the isolation may crash. Implements `Table` with the rest of it."""

    table: Table
    crashes: Crashes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    def write(self, write: Any) -> Outcome:
        """See `Table`."""
        name = _step(write)
        return cast("Outcome", self.crashes.around(name, lambda: self.table.write(write)) if name else self.table.write(write))

    def transact(self, members: Sequence[Any]) -> Transaction:
        """See `Table`."""
        noting = any(member.key == "isolation" for member in members)
        return cast("Transaction", self.crashes.around("note", lambda: self.table.transact(members)) if noting else self.table.transact(members))


def _step(write: Any) -> str:
    names = {path[0] for path in write.put} if isinstance(write, Update) else set()
    return "exclude" if "excluded" in names else "shorten" if "end" in names and "batch" not in names else ""


@dataclass
class Folder:
    """Dead letters as files. Implements `DeadLetters`."""

    root: Path
    crashes: Crashes

    def write(self, letter: DeadLetter) -> None:
        """See `DeadLetters`."""
        self.crashes.around("letter", lambda: self._store(letter))

    def _store(self, letter: DeadLetter) -> None:
        file = self.root / letter.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(letter.to_json())


@dataclass
class World:
    """A stream with a poison record, a table, and a sink that has each batch once."""

    table: Table
    root: Path
    hangs: bool
    stream: MemoryStream = field(default_factory=lambda: MemoryStream("s", 2))
    sink: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    attempts: Iterator[int] = field(default_factory=lambda: count(1))
    now: float = 0.0
    left: int = sum(map(len, RECORDS.values()))

    def __post_init__(self) -> None:
        for shard, names in RECORDS.items():
            for name in names:
                self.stream.put_in(f"shardId-00000000000{shard}", name.encode())
        store = CheckpointStore(self.table)
        bootstrap.prepare(store, bootstrap.Seed("p", "c", self.stream.describe(), self.stream.list_shards()), StartConfig())

    def epoch(self, crashes: Crashes) -> None:
        """One driver, until everything is committed, or it ends otherwise."""
        store = CheckpointStore(cast("Table", Watched(self.table, crashes)))
        before = store.consumer()
        assert before is not None
        taken = store.take(before, replace(before, token=f"t{before.generation}", lease_millis=1))
        assert taken is not None
        consumer = Consumer(store, self.stream, Epoch(taken.generation, taken.token))
        consumer.begin()
        source = ShardReader(MemoryKinesis(self.stream), self.stream, consumer.identify())
        excluding = ExclusionPorts(source, Folder(self.root, crashes))
        ports = IsolationPorts(excluding, self._judged, quiet=lambda: True, wait=self._wait, clock=lambda: self.now)
        isolator = Isolator(consumer, ports, Search(2, AT_ONCE))
        engine = Engine(self, consumer, source, isolator)
        drain = threading.Event()

        def progress(committed: Committed | None, _seconds: float) -> None:
            self.left -= committed.records + committed.excluded if committed else 0
            if not self.left or committed is None:
                drain.set()

        timings = LoopTimings(0.0, None, lambda _rows: True, progress, lambda: None, lambda: self.now)
        Loop(consumer, engine, timings, drain, isolator).run()

    def _judged(self, error: Exception) -> BatchFailure | None:
        return BatchFailure("e", transient=False, at=self.now, told="ValueError: poison") if isinstance(error, ValueError) else None

    def _wait(self, seconds: float) -> bool:
        self.now += seconds
        return False

    def delivered(self) -> dict[int, list[str]]:
        """What the sink has of each shard, in the order of the batches."""
        batches = [self.sink[number] for number in sorted(self.sink)]
        return {shard: [name for batch in batches for name in batch.get(f"shardId-00000000000{shard}", [])] for shard in RECORDS}


@dataclass
class Engine:
    """Reads a batch as tasks do, and calls `process`. Implements `batches.consumer.Engine`."""

    world: World
    consumer: Consumer
    source: ShardReader
    isolator: Isolator

    def run(self, plan: BatchPlan) -> None:
        """See `Engine`."""
        if plan.is_empty_replay:
            return
        rows = {row.id: self._read(plan, row.id) for row in plan.rows}
        if any("poison" in names for names in rows.values()):
            if self.world.hangs:
                self.world.now += 400.0
                self.isolator.overdue(plan.number, "e", "BatchOverdue: poison")
                raise Overdue
            raise ValueError("poison")
        self.world.sink.setdefault(plan.number, rows)

    def _read(self, plan: BatchPlan, shard: str) -> list[str]:
        store, epoch = self.consumer.store, self.consumer.epoch
        reader = TaskAttempt(f"{epoch.generation}.0.{shard}", next(self.world.attempts))
        task = Task(epoch, plan.number, reader, Limits(plan.limit or 100, 2**20), 1.0, lambda _seconds: None)
        fetched = read_shard(store, self.source, task, store.read([shard])[shard])
        return [data.decode() for data in fetched.columns.data]


def lived_through(world: World, crashes: Crashes) -> None:
    """Drivers, one after the other, until one has committed everything; what crashes crashes once."""
    for _ in range(MOST_EPOCHS):
        try:
            world.epoch(crashes)
        except (Crash, Overdue):
            continue
        if not world.left:
            return
    raise AssertionError(f"not everything after {MOST_EPOCHS} epochs: {crashes.seen}")


def check(world: World) -> None:
    """Every record is in the sink or in the dead letters, once, and in order."""
    assert world.delivered() == GOOD
    (letter,) = (letter for _, letter in letters(DiskFolder(world.root)))
    assert letter.data == b"poison"


WRITES = {False: 6, True: 19}  # of the isolation
each_way = pytest.mark.parametrize("hangs", [False, True], ids=["raises", "hangs"])


@each_way
def test_the_isolation_makes_these_writes(table: Table, tmp_path: Path, hangs: bool) -> None:  # noqa: FBT001 - of the table
    """The letter comes before the exclusion."""
    world, crashes = World(table, tmp_path, hangs), Crashes()
    lived_through(world, crashes)
    check(world)
    assert set(crashes.seen) == {"shorten", "letter", "note", "exclude"}
    assert crashes.seen.index("letter") < crashes.seen.index("exclude")
    assert len(crashes.seen) == WRITES[hangs]
    assert noted(CheckpointStore(table)).ever == 1


@pytest.mark.slow
@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize(("hangs", "at"), [(hangs, at) for hangs, writes in WRITES.items() for at in range(writes)])
def test_a_crash_at_any_of_them_loses_nothing_and_doubles_nothing(dynamo_table: Table, tmp_path: Path, hangs: bool, at: int, when: str) -> None:  # noqa: FBT001
    """The next driver comes to the same end."""
    world, crashes = World(dynamo_table, tmp_path, hangs), Crashes(at, when)
    lived_through(world, crashes)
    assert len(crashes.seen) > at
    check(world)
