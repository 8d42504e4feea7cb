"""A stream of one shard in virtual time, and what reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_consumer.shards.ranges import BoundRange, Fetched, FetchRequest, Limits
from sluice_consumer.shards.reader import ShardReader
from sluice_lab.fakes.kinesis import FakeBehaviour, MemoryKinesis
from sluice_lab.fakes.stream import MemoryStream

START_MILLIS = 1_700_000_000_000
SHARD = "shardId-000000000000"
PLENTY = Limits(10_000, 8 * 1024 * 1024)


@dataclass
class Stream:
    """A stream of one shard, and what reads it; `now` is its clock, epoch milliseconds."""

    now: int = START_MILLIS
    memory: MemoryStream = field(init=False)
    client: MemoryKinesis = field(init=False)
    reader: ShardReader = field(init=False)

    def __post_init__(self) -> None:
        self.memory = MemoryStream("orders", now=lambda: self.now)
        self.client = MemoryKinesis(self.memory)
        self.reader = ShardReader(self.client, self.memory, self.memory.describe())

    def behaves(self, **behaviour: Any) -> None:
        self.client.behaviour = FakeBehaviour(**behaviour)

    def put(self, *payloads: bytes) -> list[str]:
        """Puts records into the first shard, a second apart."""
        numbers = []
        for payload in payloads:
            numbers.append(self.memory.put_in(SHARD, payload))
            self.now += 1000
        return numbers

    def fetch(self, position: Position = TRIM_HORIZON, limits: Limits = PLENTY, read_to: int = 0) -> Fetched:
        return self.reader.fetch(FetchRequest(SHARD, position, read_to), limits)

    def go_on(self, fetched: Fetched) -> Fetched:
        return self.reader.fetch(FetchRequest(SHARD, fetched.end, fetched.read_to, fetched.iterator), PLENTY)

    def replay(self, fetched: Fetched) -> Fetched:
        return self.reader.replay(BoundRange(SHARD, fetched.start, fetched.end, fetched.first, fetched.records))
