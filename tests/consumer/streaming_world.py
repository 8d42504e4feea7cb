"""An in-memory fake of Spark's micro-batches over in-memory fakes of the services, in which a process may die at any step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_consumer.batches import bootstrap
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.folding import FOLD_LIMITS, Folder, FoldLimits, FoldPorts
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.config import StartConfig
from sluice_consumer.shards import reader
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.ranges import FetchRequest, Limits
from sluice_consumer.streaming.offsets import Offset
from sluice_consumer.streaming.planner import StreamPlanner, Surroundings
from sluice_lab.fakes.kinesis import MemoryKinesis
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

Content = tuple[tuple[str, tuple[bytes, ...]], ...]


class Crash(Exception):
    """The process is gone."""


@dataclass
class Steps:
    left: int | None = None
    names: list[str] = field(default_factory=list)

    def __call__(self, name: str) -> None:
        self.names.append(name)
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Crash(name)


@dataclass
class Checkpoint:
    """Spark's checkpoint directory: what each of its batches ends at, and how many of them are done."""

    offsets: list[dict[str, Any]] = field(default_factory=list)
    commits: int = 0


@dataclass
class World:
    """A stream of two shards, one of them split, with a checkpoint table, a checkpoint directory and a sink that takes each of Spark's batches once.

    Attributes:
        reads: whether Spark reads a shard in a batch; a function of foreachBatch may leave some out.
        names_the_start: whether Spark says where the batch begins that it asks for. Spark 4.1 does not; what it has committed can be looked up.
        skips: what becomes of one of Spark's batches whose id the sink knows; None: it is taken again.
        batches_without_data: whether Spark makes a batch of its own after each with data, as it does for state.
        audits: whether the shards are listed before each batch.
        accepted: what a person has said of a batch (`acceptLossOfBatch`).
        folds: when rows of shards that are over are folded.
    """

    table: MemoryTable = field(default_factory=MemoryTable)
    spark: Checkpoint = field(default_factory=Checkpoint)
    sink: dict[int, Content] = field(default_factory=dict)
    steps: Steps = field(default_factory=Steps)
    generation: int = 0
    told: list[Committed | None] = field(default_factory=list)
    check: Callable[[BatchPlan], None] = lambda _plan: None
    reads: Callable[[str], bool] = lambda _shard: True
    names_the_start: bool = True
    skips: Callable[[World, StreamPlanner, BatchPlan | None], None] | None = None
    batches_without_data: bool = False
    accepted: int | None = None
    audits: bool = False
    folds: FoldLimits = FOLD_LIMITS

    def __post_init__(self) -> None:
        self.now = 1_700_000_000_000
        self.stream = MemoryStream("s", 2, now=self._clock)
        self.store = CheckpointStore(self.table)
        shards = [shard.id for shard in self.stream.list_shards().shards]
        self.put(shards, 7)
        children = self.stream.split(shards[0])
        self.put([shards[1], *children], 5)
        bootstrap.prepare(self.store, bootstrap.Seed("p", "id", self.stream.describe(), self.stream.list_shards()), StartConfig())
        self.source = reader.ShardReader(MemoryKinesis(self.stream), self.stream, self.stream.describe())
        self.table.hook = lambda when, operation, _: self.steps(f"{when} {operation}") if operation in {"write", "transact"} else None

    def _clock(self) -> int:
        self.now += 1
        return self.now

    def put(self, shards: list[str], count: int) -> None:
        for shard in shards:
            for _ in range(count):
                self.stream.put_in(shard, f"{shard}/{self.now}".encode())

    def epoch(self) -> StreamPlanner:
        before = self.store.consumer()
        assert before is not None
        after = self.store.take(before, replace(before, token=f"t{before.generation}", lease_millis=1))
        assert after is not None
        consumer = Consumer(self.store, self.stream, Epoch(after.generation, after.token))
        consumer.begin()
        self.generation = after.generation
        engine = type("Engine", (), {"run": lambda _self, plan: self.check(plan)})()
        folder = Folder(consumer, FoldPorts(self.store, lambda: 0.0), self.folds)
        around = Surroundings(lambda: None, self.probe, lambda: self.audits, engine, self.told.append, self.stands, folder.fold)
        return StreamPlanner(consumer, around, self.accepted)

    def stands(self) -> Offset | None:
        """What Spark's commit log holds, as Spark keeps it in memory too."""
        return Offset.from_map(self.spark.offsets[self.spark.commits - 1]) if self.spark.commits else None

    def probe(self, rows: Any) -> dict[str, bool]:
        return {row.id: not (self.more(row) or self.closed(row.id)) for row in rows}

    def more(self, row: ShardRow) -> int:
        return len(self.source.fetch(FetchRequest(row.id, row.end), Limits(1, 100)).columns)

    def closed(self, shard: str) -> bool:
        return any(shard in each.parents for each in self.stream.list_shards().shards)

    def query(self) -> None:
        """Spark's micro-batches until there is nothing to read: what MicroBatchExecution does, in its order."""
        planner = self.epoch()
        log = self.spark
        initial = planner.initial()
        offsets = [initial, *map(Offset.from_map, log.offsets)]
        if log.commits < len(log.offsets):
            self._batch(planner, *offsets[-2:])
        while True:
            start = Offset.from_map(log.offsets[-1]) if log.offsets else initial
            end = planner.latest(start if self.names_the_start else None)
            self.steps("latest")
            if end == start and log.offsets and not (self.batches_without_data and log.offsets[-2:] != [end.to_map()] * 2):
                return
            log.offsets.append(end.to_map())
            self.steps("offsets written")
            if len(log.offsets) > 1:
                planner.finish(start)
            self._batch(planner, start, end)

    def _batch(self, planner: StreamPlanner, start: Offset, end: Offset) -> None:
        plan = planner.partitions(start, end)
        number = len(self.spark.offsets) - 1
        if self.skips is not None and number in self.sink:
            self.skips(self, planner, plan)
        else:
            self._store(number, () if plan is None else self.read(plan))
        self.spark.commits = number + 1
        self.steps("commit written")

    def _store(self, number: int, found: Content) -> None:
        assert self.sink.get(number, found) == found, "a batch came again with another content"
        self.steps("before the sink")
        self.sink[number] = found
        self.steps("in the sink")

    def read(self, plan: BatchPlan, end: RunEnd | None = None) -> Content:
        limits = Limits(3, 1000, end.millis if end else None)
        task = Task(Epoch(self.generation, ""), plan.number, TaskAttempt(f"{self.generation}.0.0", 1), limits, 1, lambda _: None)
        rows = self.store.read(row.id for row in plan.rows if self.reads(row.id))
        return tuple((i, tuple(read_shard(self.store, self.source, task, row).columns.data)) for i, row in rows.items())

    def survive(self) -> bool:
        """Runs the query; False: it crashed."""
        try:
            self.query()
        except Crash:
            return False
        finally:
            self.steps = Steps()
        return True

    def judge(self) -> None:
        """Every record is in the sink once, in the order of its shard, and children come after their parents."""
        order: dict[str, list[bytes]] = {}
        for _, content in sorted(self.sink.items()):
            for shard, data in content:
                order.setdefault(shard, []).extend(data)
        assert order == {shard.id: [record.data for record in self.records(shard.id)] for shard in self.stream.list_shards().shards}
        firsts = list(order)
        parent, *_, left, right = sorted(firsts)
        assert firsts.index(parent) < firsts.index(left)
        assert firsts.index(parent) < firsts.index(right)

    def records(self, shard: str) -> list[Any]:
        return self.stream.shards[shard].records

    def committed(self) -> int:
        row = self.store.consumer()
        assert row is not None
        return row.committed
