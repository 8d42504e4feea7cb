"""The way back to KCL, with the real library: on exported rows it delivers what is owed, and nothing that Sluice has dealt with."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from click.testing import CliRunner
from kcl_worker import REGION, kcl

from sluice_checkpoints.cli.main import main
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.lease import Watcher, take_over
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_checkpoints.protocol.store import Range, TaskAttempt
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.process import supervisor, wiring

MAGIC = bytes.fromhex("f3899ac2")  # KPL, aggregation-format.md
pytestmark = pytest.mark.usefixtures("credentials")


class Orders:
    def __init__(self, endpoint: str) -> None:
        self.client: Any = boto3.client("kinesis", endpoint_url=endpoint, region_name=REGION)
        self.name = f"orders-{uuid.uuid4()}"
        self.client.create_stream(StreamName=self.name, ShardCount=2)
        self.ready()
        self.zero, self.one = (shard["ShardId"] for shard in self.shards())

    def ready(self) -> None:
        self.client.get_waiter("stream_exists").wait(StreamName=self.name, WaiterConfig={"Delay": 1})

    def shards(self) -> list[Mapping[str, Any]]:
        return list(self.client.list_shards(StreamName=self.name)["Shards"])

    def split(self) -> tuple[str, str]:
        low, high = (int(self.shards()[0]["HashKeyRange"][key]) for key in ("StartingHashKey", "EndingHashKey"))
        self.client.split_shard(StreamName=self.name, ShardToSplit=self.zero, NewStartingHashKey=str((low + high) // 2 + 1))
        self.ready()
        first, second = (shard["ShardId"] for shard in self.shards() if shard.get("ParentShardId") == self.zero)
        return first, second

    def put(self, shard: str, data: bytes) -> str:
        reply = self.client.put_record(StreamName=self.name, Data=data, PartitionKey=self.key(shard))
        assert reply["ShardId"] == shard
        return str(reply["SequenceNumber"])

    def key(self, shard: str) -> str:
        """A partition key of a shard: KCL leaves out user records whose key is another's."""
        (found,) = (one["HashKeyRange"] for one in self.shards() if one["ShardId"] == shard)
        low, high = int(found["StartingHashKey"]), int(found["EndingHashKey"])
        return next(key for key in map(str, range(10_000)) if low <= int(hashlib.md5(key.encode(), usedforsecurity=False).hexdigest(), 16) <= high)


def aggregate(key: str, *payloads: bytes) -> bytes:
    def field(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    body = field(1, key.encode()) + b"".join(field(3, b"\x08\x00" + field(3, payload)) for payload in payloads)
    return MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest()


def dealt_with(orders: Orders, config: Config) -> set[str]:
    """Sluice has read a part; returns the user records that are owed after that, as KCL prints them."""
    whole = [orders.put(orders.zero, f"a{n}".encode()) for n in range(2)]
    low, high = orders.split()
    key = orders.key(orders.one)
    inside = orders.put(orders.one, aggregate(key, b"b0", b"b1", b"b2"))
    orders.put(orders.one, b"b3")
    orders.put(low, b"c0")
    read = orders.put(high, b"d0")
    orders.put(high, b"d1")
    store = supervisor.open_table(config)
    epoch = take_over(store, supervisor.claim(config), Watcher()).epoch
    consumer = Consumer(store, wiring.catalog(config), epoch)
    consumer.begin()
    children = tuple(Child(child, frozenset({orders.zero})) for child in (low, high))
    ends = {orders.zero: END, orders.one: Position.after(inside, 1), high: Position.after(read)}
    for shard, end in ends.items():
        row: ShardRow = store.read([shard])[shard]
        bound = Range(shard, row.end, end, first=whole[0], records=1, children=children if end == END else None)
        assert store.bind(epoch, 1, bound, TaskAttempt(f"{epoch.generation}.0.0", 1)) is None
    assert store.read([low])[low].end == TRIM_HORIZON
    store.commit(epoch, 1)
    assert store.release(epoch)
    return {f"{orders.one} b2", f"{orders.one} b3", f"{low} c0", f"{high} d1"}


@pytest.mark.slow
def test_kcl_goes_on_where_an_export_says(dynamodb_endpoint: str, kinesis_local_endpoint: str, jars: Path, tmp_path: Path) -> None:
    orders = Orders(kinesis_local_endpoint)
    table, application = (f"{what}-{uuid.uuid4()}" for what in ("sluice", "kcl"))
    config = Config(StreamConfig(orders.name, REGION, kinesis_local_endpoint, dynamodb_endpoint), CheckpointsConfig(table), PipelineConfig("m:f"))
    owed = dealt_with(orders, config)
    endpoints = ("--kinesis-endpoint", kinesis_local_endpoint, "--dynamodb-endpoint", dynamodb_endpoint)
    export = ["export", "--format", "kcl", "--table", table, "--to", application, "--stream", orders.name, "--region", REGION, *endpoints]
    result = CliRunner().invoke(main, [*export, "--quiet-seconds", "0"])
    assert result.exit_code == 0, result.output
    where = {"KINESIS": kinesis_local_endpoint, "DYNAMODB": dynamodb_endpoint}
    with kcl(jars, orders.name, application, where, tmp_path / "kcl.log") as until:
        until(owed)
        last = {f"{shard['ShardId']} the last" for shard in orders.shards() if shard["ShardId"] != orders.zero}
        for line in last:
            orders.put(line.split()[0], b"the last")
        assert sorted(until(last)) == sorted(owed | last)  # shards are read in order, so nothing else is to come
