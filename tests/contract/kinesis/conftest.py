"""One stream of Kinesis, three times: in memory, in kinesis-local and in kinesalite. What holds for one has to hold for all."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

import boto3
import pytest

from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.model import PositionCatalog
from sluice_consumer.kinesis.client import KinesisClient
from sluice_consumer.kinesis.http import HttpKinesis, _calls
from sluice_consumer.kinesis.pacing import Pacer
from sluice_lab.fakes.kinesis import FakeBehaviour, MemoryKinesis
from sluice_lab.fakes.stream import MemoryStream

REGION = "us-east-1"
SERVICES = ["memory", "memory like kinesis-local", "memory like kinesalite", "kinesis-local", "kinesalite"]


class Service(Protocol):
    @property
    def catalog(self) -> PositionCatalog: ...

    @property
    def client(self) -> KinesisClient: ...

    def put(self, shard_id: str, data: bytes) -> str:
        """Puts a record into an open shard; returns its sequence number."""
        ...

    def split(self, shard_id: str) -> None: ...

    def merge(self, shard_id: str, adjacent: str) -> None: ...

    def now(self) -> int:
        """The service's clock, epoch milliseconds."""
        ...


@dataclass
class InMemory:
    stream: MemoryStream
    client: KinesisClient

    @property
    def catalog(self) -> PositionCatalog:
        return self.stream

    def put(self, shard_id: str, data: bytes) -> str:
        return self.stream.put_in(shard_id, data)

    def split(self, shard_id: str) -> None:
        self.stream.split(shard_id)

    def merge(self, shard_id: str, adjacent: str) -> None:
        self.stream.merge(shard_id, adjacent)

    def now(self) -> int:
        return self.stream.now()


class Emulated:
    def __init__(self, api: Any, endpoint: str, shards: int) -> None:
        self._api, self._name = api, f"contract-{uuid4()}"
        api.create_stream(StreamName=self._name, ShardCount=shards)
        self.catalog = BotoStreamCatalog(StreamAddress(self._name, REGION, endpoint))
        self._settle()
        self.client = HttpKinesis(StreamAddress(self._name, REGION, endpoint), _calls(REGION, endpoint), Pacer(sleep=lambda _seconds: None))

    def put(self, shard_id: str, data: bytes) -> str:
        where = self.catalog.list_shards().get(shard_id)
        assert where is not None
        reply = self._api.put_record(StreamName=self._name, Data=data, PartitionKey="key", ExplicitHashKey=str(where.starting_hash))
        assert reply["ShardId"] == shard_id
        return str(reply["SequenceNumber"])

    def split(self, shard_id: str) -> None:
        shard = self.catalog.list_shards().get(shard_id)
        assert shard is not None
        middle = (shard.starting_hash + shard.ending_hash + 1) // 2
        self._api.split_shard(StreamName=self._name, ShardToSplit=shard_id, NewStartingHashKey=str(middle))
        self._settle()

    def merge(self, shard_id: str, adjacent: str) -> None:
        self._api.merge_shards(StreamName=self._name, ShardToMerge=shard_id, AdjacentShardToMerge=adjacent)
        self._settle()

    def now(self) -> int:
        return round(time.time() * 1000)

    def _settle(self) -> None:
        """Waits until the stream is ACTIVE; the emulator decides when, so this polls."""
        deadline = time.monotonic() + 10
        while self.catalog.describe().status != "ACTIVE":
            assert time.monotonic() < deadline, "the stream does not become ACTIVE"
            time.sleep(0.02)


def in_memory(behaviour: FakeBehaviour, shards: int) -> InMemory:
    stream = MemoryStream("orders", shards, now=lambda: 1_700_000_000_123)
    return InMemory(stream, MemoryKinesis(stream, behaviour))


@pytest.fixture(scope="session")
def kinesis_local(kinesis_local_endpoint: str) -> Callable[[int], Emulated]:
    return lambda shards: Emulated(boto3.client("kinesis", region_name=REGION, endpoint_url=kinesis_local_endpoint), kinesis_local_endpoint, shards)


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> Callable[[int], Service]:
    behaviour = {
        "memory": FakeBehaviour(),
        "memory like kinesis-local": FakeBehaviour(end_with_records=True),
        "memory like kinesalite": FakeBehaviour(child_shards=False),
    }
    if request.param in behaviour:
        return lambda shards: in_memory(behaviour[request.param], shards)
    endpoint = request.getfixturevalue("kinesis_local_endpoint" if request.param == "kinesis-local" else "kinesalite_endpoint")
    api = boto3.client("kinesis", region_name=REGION, endpoint_url=endpoint)
    return lambda shards: Emulated(api, endpoint, shards)
