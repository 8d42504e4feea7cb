"""A consumer whose `process` cannot deal with some records, on a real table and a real folder of letters; drivers that crash at any write.

The rows, the search and the letters are the product's code; Spark is a loop over the shards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

from sluice_checkpoints.letters import pending
from sluice_checkpoints.letters.folder import DiskFolder, letters
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.letters.pending import PendingName
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_checkpoints.protocol.table import Outcome, Table, Transaction, Update
from sluice_consumer.batches import bootstrap
from sluice_consumer.batches.batch_letters import BatchLetters, Letters
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.loop import Loop, LoopTimings
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.config import StartConfig
from sluice_consumer.pipelines import DriverLetters
from sluice_consumer.poison.exclusions import ExclusionPorts
from sluice_consumer.poison.isolator import IsolationPorts, Isolator
from sluice_consumer.poison.search import BatchFailure, DoubtLimits, Search
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.shards.reader import ShardReader
from sluice_lab.fakes.kinesis import MemoryKinesis
from sluice_lab.fakes.stream import MemoryStream

RECORDS = {0: ["a0", "a1", "poison", "a3"], 1: ["b0", "b1"]}
BEFORE, AFTER = "before", "after"
MOST_EPOCHS = 20
AT_ONCE = DoubtLimits(data=0, unknown=0, nothing=0, refused=0)
Rows = dict[str, list[tuple[Any, ...]]]


class Crash(BaseException):
    """The driver's process is gone."""


class Overdue(BaseException):
    """The driver ended because `process` did not."""


@dataclass
class Crashes:
    """Crashes at some of the writes, each once; counts them. `look` is called after each letter that became final.

    `error`: what is raised; a ValueError counts as one of `process`.
    """

    at: tuple[int, ...] = ()
    when: str = BEFORE
    seen: list[str] = field(default_factory=list)
    look: Callable[[], None] = lambda: None
    error: type[BaseException] = Crash

    def around(self, name: str, write: Any) -> Any:
        self.seen.append(name)
        here = len(self.seen) - 1 in self.at
        if here and self.when == BEFORE:
            raise self.error
        done = write()
        if name == "letter":
            self.look()
        if here:
            raise self.error
        return done


@dataclass
class Watched:
    table: Table
    crashes: Crashes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    def write(self, write: Any) -> Outcome:
        name = _step(write)
        return cast("Outcome", self.crashes.around(name, lambda: self.table.write(write)) if name else self.table.write(write))

    def transact(self, members: Sequence[Any]) -> Transaction:
        noting = any(member.key == "isolation" for member in members)
        return cast("Transaction", self.crashes.around("note", lambda: self.table.transact(members)) if noting else self.table.transact(members))


def _step(write: Any) -> str:
    if not isinstance(write, Update):
        return ""
    names = {path[0] for path in (*write.put, *write.remove)}
    if write.key == "consumer":
        return "commit" if "committed" in names else "named" if "letters" in names else ""
    return "exclude" if ("excluded",) in write.put else "shorten" if "end" in names and "batch" not in names else ""


@dataclass
class Folder:
    root: Path
    crashes: Crashes

    def hold(self, name: PendingName, letters: Letters) -> str:
        file = self.root / letters[0].consumer / pending.FOLDER / f"{name}{pending.SUFFIX}"
        self.crashes.around("hold", lambda: self._store(file, pending.to_text(letters)))
        return str(file)

    def held(self) -> dict[str, tuple[PendingName, Letters]]:
        return {str(file): (PendingName.parse(file.name), pending.from_text(file.read_text(), file.name)) for file in self.root.rglob("*.pending")}

    def publish(self, entry: str) -> bool:
        for letter in pending.from_text(Path(entry).read_text(), entry):
            self.crashes.around("letter", lambda letter=letter: self._store(self.root / letter.path, letter.to_json()))
        return True

    def drop(self, entries: Iterable[str]) -> frozenset[str]:
        for entry in entries:
            self.crashes.around("drop", lambda entry=entry: Path(entry).unlink())
        return frozenset(entries)

    def _store(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(text)


STORES, REJECTS, RAISES, HANGS, REJECTS_AND_RAISES = "stores", "rejects", "raises", "hangs", "rejects and raises"
SKIPS, LOOKS_FIRST, OVERWRITES, IN_PARTS = "skips", "looks first", "overwrites", "in parts"


@dataclass
class World:
    """A stream with poison records, a table, and a sink that has each batch once.

    Attributes:
        does: what `process` does with poison; repaired: what it does in every epoch after the first.
        sink_kind: what the sink does with a batch that it has.
        attempts: failures of a batch before it is shortened; None: nothing is isolated.
        ever: what was a final letter at any moment.
        positions: of a sink that stores in parts, the last stored record of each shard.
    """

    table: Table
    root: Path
    does: str = RAISES
    repaired: str | None = None
    sink_kind: str = SKIPS
    records: dict[int, list[str]] = field(default_factory=lambda: RECORDS)
    attempts: int | None = 2
    stream: MemoryStream = field(default_factory=lambda: MemoryStream("s", 2))
    sink: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    now: float = 0.0
    ever: set[str] = field(default_factory=set)
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for shard, names in self.records.items():
            for name in names:
                self.stream.put_in(f"shardId-00000000000{shard}", name.encode())
        store = CheckpointStore(self.table)
        bootstrap.prepare(store, bootstrap.Seed("p", "c", self.stream.describe(), self.stream.list_shards()), StartConfig())

    def epoch(self, crashes: Crashes) -> None:
        consumer = self.consumer(crashes)
        consumer.begin()
        source = ShardReader(MemoryKinesis(self.stream), self.stream, consumer.identify())
        found = consumer.letters = BatchLetters(Folder(self.root, crashes), consumer.epoch.generation)
        consumer.publish()
        ports = IsolationPorts(ExclusionPorts(source, found), self._judged, quiet=lambda: True, wait=self._wait, clock=lambda: self.now)
        isolator = Isolator(consumer, ports, Search(self.attempts, AT_ONCE)) if self.attempts else None
        drain = threading.Event()
        timings = LoopTimings(
            0.0, None, lambda rows: {row.id: True for row in rows}, lambda done, _: _idles(done, drain), lambda: None, lambda: self.now
        )
        Loop(consumer, Engine(self, consumer, source, isolator), timings, drain, isolator).run()

    def consumer(self, crashes: Crashes) -> Consumer:
        store = CheckpointStore(cast("Table", Watched(self.table, crashes)))
        before = store.consumer()
        assert before is not None
        taken = store.take(before, replace(before, token=f"t{before.generation}", lease_millis=1))
        assert taken is not None
        return Consumer(store, self.stream, Epoch(taken.generation, taken.token))

    def _judged(self, error: Exception) -> BatchFailure | None:
        return BatchFailure("e", transient=False, at=self.now, trace="ValueError: poison") if isinstance(error, ValueError) else None

    def _wait(self, seconds: float) -> bool:
        self.now += seconds
        return False

    def final(self) -> list[str]:
        """Records with a final letter: what a redrive would take."""
        return sorted(letter.data.decode() for _, letter in letters(DiskFolder(self.root))) if self.root.is_dir() else []

    def look(self) -> None:
        self.ever.update(self.final())

    def delivered(self) -> dict[int, list[str]]:
        batches = [self.sink[number] for number in sorted(self.sink)]
        return {shard: [name for batch in batches for name in batch.get(f"shardId-00000000000{shard}", [])] for shard in self.records}


def _idles(done: Committed | None, drain: threading.Event) -> None:
    if done is None:
        drain.set()


@dataclass
class Engine:
    world: World
    consumer: Consumer
    source: ShardReader
    isolator: Isolator | None

    def run(self, plan: BatchPlan) -> None:
        if plan.is_empty_replay:
            return
        try:
            self._process(plan)
        except Exception:
            letters = DriverLetters(stored={"c"} if self.world.sink_kind == IN_PARTS else set())
            letters.keep("c", self.consumer.letters)
            letters.raised("c")
            raise

    def _process(self, plan: BatchPlan) -> None:
        world = self.world
        if world.sink_kind == LOOKS_FIRST and plan.number in world.sink:
            return
        rows = {row.id: self._read(plan, row.id) for row in plan.rows}
        bad = [letter for shard, found in rows.items() for letter in self._letters(plan, shard, found) if letter.data.startswith(b"poison")]
        if bad and world.does in {RAISES, HANGS}:
            self._fails(plan)
        if world.does in {REJECTS, REJECTS_AND_RAISES}:
            assert self.consumer.letters is not None
            self.consumer.letters.reject(bad)
            rows = {shard: [row for row in found if not row[3].startswith(b"poison")] for shard, found in rows.items()}
        if world.sink_kind == IN_PARTS:
            self._keep_parts(plan.number, rows)
        elif bad and world.does == REJECTS_AND_RAISES:
            raise ValueError("the sink is down")
        else:
            self._isolation_crashes().around("sink", lambda: self._keep(plan.number, rows))

    def _isolation_crashes(self) -> Crashes:
        return cast("Watched", self.consumer.store.table).crashes

    def _keep(self, number: int, rows: Rows) -> None:
        content = {shard: [row[3].decode() for row in found] for shard, found in rows.items()}
        if self.world.sink_kind == OVERWRITES:
            self.world.sink[number] = content
        else:
            self.world.sink.setdefault(number, content)

    def _keep_parts(self, number: int, rows: Rows) -> None:
        """The rows behind the position of each shard, with the new position; the part of the first shard comes last, and may be down."""
        for shard, found in sorted(rows.items(), reverse=True):
            if found and shard.endswith("0") and self.world.does == REJECTS_AND_RAISES:
                raise ValueError("a part of the sink is down")
            self._isolation_crashes().around("sink", lambda shard=shard, found=found: self._keep_part(number, shard, found))

    def _keep_part(self, number: int, shard: str, found: list[tuple[Any, ...]]) -> None:
        position = self.world.positions.get(shard, (0, 0))
        new = [row for row in found if (int(row[0]), row[1]) > position]
        self.world.sink.setdefault(number, {}).setdefault(shard, []).extend(row[3].decode() for row in new)
        self.world.positions[shard] = max([position, *((int(row[0]), row[1]) for row in new)])

    def _fails(self, plan: BatchPlan) -> None:
        if self.world.does == HANGS and self.isolator is not None:
            self.world.now += 400.0
            self.isolator.overdue(plan.number, "e", "BatchOverdue: poison")
            raise Overdue
        raise ValueError("poison")

    def _letters(self, plan: BatchPlan, shard: str, rows: list[tuple[Any, ...]]) -> list[DeadLetter]:
        return [DeadLetter("c", "s", shard, sequence, sub, at, key, data, plan.number, 1, "no") for sequence, sub, key, data, at in rows]

    def _read(self, plan: BatchPlan, shard: str) -> list[tuple[Any, ...]]:
        store, epoch = self.consumer.store, self.consumer.epoch
        reader = TaskAttempt(f"{epoch.generation}.0.{shard}", next(self.world.numbers))
        task = Task(epoch, plan.number, reader, Limits(plan.limit or 100, 2**20), 1.0, lambda _seconds: None)
        fetched = read_shard(store, self.source, task, store.read([shard])[shard])
        return [row for row in fetched.columns.rows() if (shard, row[0], row[1]) not in plan.without]


def lived_through(world: World, crashes: Crashes) -> None:
    """Drivers, one after the other, until one found nothing more to read. A process that is repaired is so after the first of them."""
    crashes.look = world.look
    for _ in range(MOST_EPOCHS):
        try:
            world.epoch(crashes)
        except (Crash, Overdue, ValueError):
            world.does = world.repaired or world.does
            continue
        return
    raise AssertionError(f"no end after {MOST_EPOCHS} epochs: {crashes.seen}")


def check(world: World) -> None:
    """Every record is in the sink or in the final letters, once, and in order; what was ever a final letter is none of the sink's."""
    final, delivered = world.final(), world.delivered()
    assert {shard: [name for name in names if name not in final] for shard, names in world.records.items()} == delivered
    assert world.ever == set(final)
    assert len(final) == len(set(final))
    assert not list(world.root.rglob("*.pending"))
