from __future__ import annotations

import threading
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.protocol.rows import ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_checkpoints.stream.address import StreamAddress
from sluice_consumer.shards.bind import Task
from sluice_consumer.shards.ranges import Fetched, FetchRequest, Limits
from sluice_consumer.shards.reader import ShardReader as Source
from sluice_consumer.spark.batch_read import BatchRead, Group
from sluice_consumer.spark.batch_reader import BatchReader
from sluice_lab.fakes.kinesis import MemoryKinesis
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

SHARDS = 3


@dataclass
class Ordered:
    source: Source
    order: list[str]
    ended: dict[str, threading.Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ended = {shard: threading.Event() for shard in self.order}

    def fetch(self, place: FetchRequest, limits: Limits) -> Fetched:
        for before, shard in pairwise(self.order):
            if shard == place.shard_id:
                assert self.ended[before].wait(30)
        fetched = self.source.fetch(place, limits)
        self.ended[place.shard_id].set()
        return fetched


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)], ids=str)
def test_the_rows_of_a_task_come_in_the_order_of_its_shards_whichever_is_fetched_first(
    monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    """Spark repeats single tasks and takes their rows for the same rows in the same order."""
    stream = MemoryStream("s", SHARDS)
    ids = [shard.id for shard in stream.list_shards().shards]
    for shard in ids:
        stream.put_in(shard, shard.encode())
    store = CheckpointStore(MemoryTable())
    store.create_consumer(ConsumerRow("id", "arn", 1, generation=1))
    for shard in ids:
        store.put_new(ShardRow(shard, TRIM_HORIZON, TRIM_HORIZON, generation=1).to_item())
    source = Ordered(Source(MemoryKinesis(stream), stream, stream.describe()), [ids[i] for i in order])
    task = Task(Epoch(1, ""), 1, TaskAttempt("1.0.0", 1), Limits(10, 2**20), 1.0, lambda _seconds: None)
    monkeypatch.setattr(BatchReader, "_ports", lambda _self: (store, source, task))
    read: Any = BatchRead(StreamAddress("s", "r"), None, "t", stream.describe(), 1, 1, 1.0, Limits(10, 2**20), (tuple(ids),))
    rows = [row for batch in BatchReader(read).read(Group(tuple(ids))) for row in batch.to_pylist()]
    assert [row["data"] for row in rows] == [shard.encode() for shard in ids]
