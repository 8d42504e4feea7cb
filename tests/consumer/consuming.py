"""A bootstrapped consumer of a stream in memory, the epochs that take it over, and an engine that does what a test says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from sluice_checkpoints.position import END, Position
from sluice_checkpoints.protocol.rows import Child
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, Range, TaskAttempt
from sluice_checkpoints.protocol.table import Outcome, Write
from sluice_consumer.batches import bootstrap
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.config import StartConfig
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

S0, S1, S2 = (f"shardId-00000000000{i}" for i in range(3))


@dataclass
class Engine:
    act: Callable[[BatchPlan], None] = lambda _plan: None

    def run(self, plan: BatchPlan) -> None:
        self.act(plan)


class Twice:
    """A table whose writes lose their reply and are sent again."""

    def __init__(self, table: MemoryTable) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def write(self, write: Write) -> Outcome:
        self._table.write(write)
        return self._table.write(write)


# Reads of one shard in one batch: by which task, and whether the replies of its first writes are lost.
READS = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=6)


class Bench:
    def __init__(self, shards: int = 1, table: MemoryTable | None = None) -> None:
        self.now = 1_700_000_000_000
        self.stream = MemoryStream("s", shards, now=lambda: self.now)
        self.table = table or MemoryTable()
        self.store = CheckpointStore(self.table)
        bootstrap.prepare(self.store, bootstrap.Seed("p", "id", self.stream.describe(), self.stream.list_shards()), StartConfig())

    def take(self) -> Consumer:
        before = self.store.consumer()
        assert before is not None
        after = self.store.take(before, replace(before, token=f"t{before.generation}", lease_millis=1))
        assert after is not None
        return Consumer(self.store, self.stream, Epoch(after.generation, after.token))

    def begin(self) -> Consumer:
        consumer = self.take()
        consumer.begin()
        return consumer

    def bind(self, consumer: Consumer, shard: str, end: Position, children: tuple[Child, ...] | None = None) -> Callable[[BatchPlan], None]:
        def act(plan: BatchPlan) -> None:
            row = self.store.read([shard])[shard]
            self.store.bind(consumer.epoch, plan.number, Range(shard, row.end, end, "1", 1, children=children), TaskAttempt("k", 1))

        return act

    def split(self, consumer: Consumer) -> Committed:
        self.stream.split(S0)
        plan = consumer.plan()
        assert plan is not None
        children = self.stream.list_shards().children_of(S0)
        return consumer.run(plan, Engine(self.bind(consumer, S0, END, children)))
