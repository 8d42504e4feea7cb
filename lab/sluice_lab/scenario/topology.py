"""The stream: created, split, merged and listed through the Kinesis API."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from sluice_lab.errors import LabError
from sluice_lab.machine.processes import poll

ACTIVE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class StreamShard:
    """A listed shard: its range of hash keys, bounds included, and its parents."""

    id: str
    low: int
    high: int
    parents: tuple[str, ...] = ()
    closed: bool = False

    @property
    def short(self) -> str:
        """Its number: `4` for shardId-000000000004."""
        return short(self.id)


def short(shard_id: str) -> str:
    """The number of a shard, without leading zeros."""
    return shard_id.rpartition("-")[2].lstrip("0") or "0"


def shard_id(number: int) -> str:
    """The id of the shard with that number."""
    return f"shardId-{number:012d}"


class Stream:
    """A Kinesis stream."""

    def __init__(self, kinesis: Any, name: str) -> None:
        self.kinesis, self.name = kinesis, name

    def create(self, shards: int) -> None:
        """Create it, and wait until it is active."""
        self.kinesis.create_stream(StreamName=self.name, ShardCount=shards)
        self._active()

    @contextmanager
    def existing(self, shards: int) -> Iterator[Self]:
        """Create it for the time of the block. Afterwards it is gone, and its name is free."""
        self.create(shards)
        yield self
        self.kinesis.delete_stream(StreamName=self.name)
        self.kinesis.get_waiter("stream_not_exists").wait(StreamName=self.name, WaiterConfig={"Delay": 1, "MaxAttempts": int(ACTIVE_SECONDS)})

    def shards(self) -> Mapping[str, StreamShard]:
        """All shards, closed ones too."""
        listed = self.kinesis.list_shards(StreamName=self.name)["Shards"]
        return {found["ShardId"]: _shard(found) for found in listed}

    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """The parents of each shard."""
        return {shard.id: shard.parents for shard in self.shards().values()}

    def put(self, shard: str, data: bytes) -> None:
        """Put one record into an open shard."""
        low = self.shards()[shard].low
        self.kinesis.put_record(StreamName=self.name, Data=data, PartitionKey="put", ExplicitHashKey=str(low))

    def split(self, number: int) -> tuple[str, ...]:
        """Split a shard in the middle; returns its children."""
        parent = self.shards()[shard_id(number)]
        middle = (parent.low + parent.high + 1) // 2
        self.kinesis.split_shard(StreamName=self.name, ShardToSplit=parent.id, NewStartingHashKey=str(middle))
        return self._children(parent.id)

    def merge(self, first: int, second: int) -> tuple[str, ...]:
        """Merge two neighbours; returns their child."""
        one, other = shard_id(first), shard_id(second)
        self.kinesis.merge_shards(StreamName=self.name, ShardToMerge=one, AdjacentShardToMerge=other)
        return self._children(one)

    def _children(self, parent: str) -> tuple[str, ...]:
        self._active()
        return tuple(shard.id for shard in self.shards().values() if parent in shard.parents)

    def _active(self) -> None:
        time.sleep(0.05)  # the call returns before the status says UPDATING
        if not poll(lambda: self._status() == "ACTIVE", ACTIVE_SECONDS):
            raise LabError(f"stream {self.name} is {self._status()} after {ACTIVE_SECONDS:.0f} s")

    def _status(self) -> str:
        summary = self.kinesis.describe_stream_summary(StreamName=self.name)
        return str(summary["StreamDescriptionSummary"]["StreamStatus"])


def _shard(found: Mapping[str, Any]) -> StreamShard:
    parents = (found.get("ParentShardId"), found.get("AdjacentParentShardId"))
    keys = found["HashKeyRange"]
    return StreamShard(
        id=found["ShardId"],
        low=int(keys["StartingHashKey"]),
        high=int(keys["EndingHashKey"]),
        parents=tuple(parent for parent in parents if parent),
        closed="EndingSequenceNumber" in found["SequenceNumberRange"],
    )
