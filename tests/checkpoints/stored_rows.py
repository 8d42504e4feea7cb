"""A consumer of generation 4 that has committed batch 7, a shard whose last range is of that batch, and how a test looks at them."""

from __future__ import annotations

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, Range, TaskAttempt
from sluice_checkpoints.protocol.table import Put

A, B = "shardId-000000000000", "shardId-000000000001"
CONSUMER_ROW = ConsumerRow("id-1", "arn:orders", 1_700_000_000_000, generation=4, token="t4", counter=9, lease_millis=20_000, committed=7)
EPOCH, LATER, EARLIER = Epoch(4, "t4"), Epoch(5, "t5"), Epoch(3, "t3")
FIRST, SECOND = Position.after("100", 3), Position.after("200")
READER = TaskAttempt("4.1.0", 11)
BOUND = Range(A, FIRST, SECOND, first="101", records=12, read_to=99, size=1000, behind=5, calls={"kinesis/GetRecords": 2}, iterator="AAAA")
ROW = ShardRow(A, TRIM_HORIZON, FIRST, generation=4, batch=7, readers={"4.0.0": 2}, read_by="4.0.0", first="1", records=3, note="old")


def row(store: CheckpointStore, shard: str = A) -> ShardRow:
    return store.read([shard])[shard]


def consumer(store: CheckpointStore) -> ConsumerRow:
    found = store.consumer()
    assert found
    return found


def put(store: CheckpointStore, changed: ShardRow | ConsumerRow) -> None:
    store.table.write(Put(changed.to_item(), ()))
