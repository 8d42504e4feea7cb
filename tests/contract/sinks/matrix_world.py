"""A consumer whose batches a real sink gets: the protocol over in-memory fakes, Spark only for the rows.

The batches are planned, bound, closed, shortened and committed by the product's code over a table and a stream in memory. `process` gets them as a
DataFrame of the shared session, so a batch costs the sink's own work and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.letters.pending import PendingName
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_consumer import pipelines
from sluice_consumer.batches import bootstrap
from sluice_consumer.batches.batch_letters import BatchLetters, Letters
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.loop import Loop, LoopTimings
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.columns import DDL
from sluice_consumer.config import StartConfig
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.poison.exclusions import ExclusionPorts
from sluice_consumer.poison.isolator import IsolationPorts, Isolator
from sluice_consumer.poison.search import BatchFailure, DoubtLimits, Search
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.shards.reader import ShardReader
from sluice_consumer.spark.failures import judged
from sluice_lab.fakes.kinesis import MemoryKinesis
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

CONSUMER = "c"
SHARDS = ("shardId-000000000000", "shardId-000000000001")
POISON = b"no document"
MOST_EPOCHS = 30
MOST_CALLS = 150
AT_ONCE = DoubtLimits(data=0, unknown=0, nothing=0, refused=0)  # how long a doubt takes is the subject of the simulation
Process = Callable[[DataFrame, BatchInfo], None]


class Killed(BaseException):
    """The driver's process is gone."""


class Stuck(BaseException):
    """`process` was called more often than any search needs."""


@dataclass
class LettersInMemory:
    """Dead letters in memory. Implements `LetterStore`.

    Attributes:
        final: what a redrive would take, by place.
    """

    pending: dict[str, tuple[PendingName, Letters]] = field(default_factory=dict)
    final: dict[str, DeadLetter] = field(default_factory=dict)

    def hold(self, name: PendingName, letters: Letters) -> str:
        self.pending[str(name)] = (name, letters)
        return str(name)

    def held(self) -> dict[str, tuple[PendingName, Letters]]:
        return dict(self.pending)

    def publish(self, entry: str) -> bool:
        self.final |= {letter.path: letter for letter in self.pending[entry][1]}
        return True

    def drop(self, entries: Iterable[str]) -> frozenset[str]:
        gone = frozenset(entries)
        self.pending = {entry: found for entry, found in self.pending.items() if entry not in gone}
        return gone


@dataclass
class World:
    """Two shards, a table, and a sink.

    Attributes:
        process: what the user runs.
        around: called with every batch before `process` ("before") and after it ("after"): may kill, or act as the table's owner.
        per_shard: records of a shard in a batch.
        attempts: `onError.attempts`; None: no `onError`.
        batches: what `process` was called with: number, replay, how many records.
    """

    spark: SparkSession
    process: Process
    around: Callable[[str, BatchInfo], None] = lambda _when, _info: None
    per_shard: int = 100
    attempts: int | None = 2
    consumer: str = CONSUMER
    stream: MemoryStream = field(default_factory=lambda: MemoryStream("orders", len(SHARDS)))
    table: MemoryTable = field(default_factory=MemoryTable)
    letters: LettersInMemory = field(default_factory=LettersInMemory)
    batches: list[tuple[int, bool, int]] = field(default_factory=list)
    drain: threading.Event = field(default_factory=threading.Event)
    now: float = 0.0
    tasks: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        store = CheckpointStore(self.table)
        bootstrap.prepare(store, bootstrap.Seed("p", self.consumer, self.stream.describe(), self.stream.list_shards()), StartConfig())

    def put(self, *documents: bytes | int, shard: int = 0) -> None:
        for each in documents:
            self.stream.put_in(SHARDS[shard], each if isinstance(each, bytes) else document(each))

    @property
    def excluded(self) -> list[bytes]:
        return sorted(letter.data for letter in self.letters.final.values())

    @property
    def committed(self) -> int:
        row = CheckpointStore(self.table).consumer()
        assert row is not None
        return row.committed

    def epoch(self) -> None:
        self.drain.clear()
        consumer = self._begun()
        source = ShardReader(MemoryKinesis(self.stream), self.stream, consumer.identify())
        letters = consumer.letters = BatchLetters(self.letters, consumer.epoch.generation)
        pipelines.LETTERS.keep(self.consumer, letters)
        consumer.publish()
        isolator = self._isolator(consumer, source, letters) if self.attempts else None
        timings = LoopTimings(0.0, None, lambda rows: {row.id: True for row in rows}, self._progress, lambda: None, lambda: self.now)
        Loop(consumer, Engine(self, consumer, source), timings, self.drain, isolator).run()

    def until_idle(self) -> int:
        """Drivers, one after the other, until one ends by itself; how many were killed."""
        for killed in range(MOST_EPOCHS):
            try:
                self.epoch()
            except Killed:
                continue
            return killed
        raise AssertionError(f"not idle after {MOST_EPOCHS} drivers: {self.batches[-5:]}")

    def dies_after(self, call: int) -> None:
        """One driver, which is killed after that call of `process`: the sink has the batch, and nobody has committed it."""
        self.around = killed_at(("after", call))
        try:
            self.epoch()
        except Killed:
            self.around = lambda _when, _info: None
        else:
            raise AssertionError(f"the driver was not killed: {self.batches}")

    def _begun(self) -> Consumer:
        store = CheckpointStore(self.table)
        before = store.consumer()
        assert before is not None
        taken = store.take(before, replace(before, token=f"t{before.generation}", lease_millis=1))
        assert taken is not None
        consumer = Consumer(store, self.stream, Epoch(taken.generation, taken.token))
        consumer.begin()
        return consumer

    def _isolator(self, consumer: Consumer, source: ShardReader, letters: BatchLetters) -> Isolator:
        excluding = ExclusionPorts(source, letters)
        ports = IsolationPorts(excluding, self._judged, quiet=lambda: True, wait=self._wait, clock=lambda: self.now)
        return Isolator(consumer, ports, Search(self.attempts or 1, AT_ONCE))

    def _judged(self, error: Exception) -> BatchFailure | None:
        found = judged(error)
        return found and replace(found, at=self.now)

    def _wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.drain.is_set()

    def _progress(self, committed: Committed | None, _seconds: float) -> None:
        self.now += 1.0
        if committed is None:
            self.drain.set()


@dataclass
class Engine:
    world: World
    consumer: Consumer
    source: ShardReader

    def run(self, plan: BatchPlan) -> None:
        if plan.is_empty_replay:
            return
        rows = [row for shard in plan.rows for row in self._read(plan, shard.id) if (row[3], row[4], row[5]) not in plan.without]
        info = BatchInfo(self.world.consumer, plan.number, plan.replay, "orders", tuple(row.id for row in plan.rows))
        self.world.batches.append((plan.number, plan.replay, len(rows)))
        if len(self.world.batches) > MOST_CALLS:
            raise Stuck(str(self.world.batches[-5:]))
        self.world.around("before", info)
        pipelines.LETTERS.begin(info.consumer)
        try:
            self.world.process(frame(self.world.spark, rows), info)
        except Exception:
            pipelines.LETTERS.raised(info.consumer)
            raise
        self.world.around("after", info)

    def _read(self, plan: BatchPlan, shard: str) -> list[tuple[Any, ...]]:
        store, epoch = self.consumer.store, self.consumer.epoch
        reader = TaskAttempt(f"{epoch.generation}.0.{shard}", next(self.world.tasks))
        limits = Limits(min(plan.limit or self.world.per_shard, self.world.per_shard), 2**20)
        task = Task(epoch, plan.number, reader, limits, 1.0, lambda _seconds: None)
        fetched = read_shard(store, self.source, task, store.read([shard])[shard])
        return [
            (key, bytearray(data), "orders", shard, sequence, sub, datetime.fromtimestamp(arrival / 1000, UTC))
            for sequence, sub, key, data, arrival in fetched.columns.rows()
        ]


def frame(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, DDL).coalesce(1)


def document(number: int) -> bytes:
    return b'{"id": %d, "name": "order %d"}' % (number, number)


def killed_at(*moments: tuple[str, int]) -> Callable[[str, BatchInfo], None]:
    """Kills the driver at these moments, once at each: ("before" or "after", which call of `process`)."""
    left, calls = set(moments), {"before": count(1), "after": count(1)}

    def around(when: str, _info: BatchInfo) -> None:
        moment = (when, next(calls[when]))
        if moment in left:
            left.remove(moment)
            raise Killed

    return around
