"""A world of twins for migrations: one clock, a stream, a KCL table, and a place for targets, with a fault at any call."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.memory import MemoryTable
from sluice_checkpoints.migration_twin import MemorySources, MemoryTargets
from sluice_checkpoints.migration_world import Request, World
from sluice_checkpoints.migrator import Migrator
from sluice_checkpoints.model import CONSUMER, MIGRATION, SHARD_PREFIX, Item
from sluice_checkpoints.source import Key, RawItem
from sluice_checkpoints.stream import Shard, ShardList, StreamIdentity
from sluice_checkpoints.stream_twin import StreamTwin

GOLDEN = Path(__file__).parent / "golden"
KCL_KEYS = (Key("leaseKey", "HASH", "S"),)
SOURCE, TARGET = "orders-kcl", "sluice-orders"


class Crash(BaseException):
    """The process is gone: nothing of it runs any more, no handler and no clean-up."""


@dataclass
class Calls:
    """Every call of the world passes here, numbered from 0. One of them may be made to fail.

    Attributes:
        crash_at: from this call on the process is dead. A crash "after" took effect, one "before" did not.
        lose_at: the reply of this call is lost.
        visit: called at every call with its number; may do what other programs would do at this moment.
    """

    made: int = 0
    log: list[str] = field(default_factory=list)
    crash_at: int | None = None
    lose_at: int | None = None
    visit: Callable[[int], None] = lambda _number: None

    def __call__(self, when: str, operation: str, _argument: object) -> None:
        """The hook."""
        number, self.made = self.made, self.made + 1
        self.log.append(f"{when} {operation}")
        if self.crash_at is not None and number >= self.crash_at:
            raise Crash
        if number == self.lose_at:
            raise ServiceUnavailable(f"call {number} had no answer")
        self.visit(number)


@dataclass
class Catalog:
    """A stream catalog whose calls are counted."""

    stream: StreamTwin
    calls: Calls

    def describe(self) -> StreamIdentity:
        """See `StreamCatalog`."""
        self.calls("before", "describe stream", None)
        return self.stream.describe()

    def list_shards(self) -> ShardList:
        """See `StreamCatalog`."""
        self.calls("before", "list shards", None)
        return self.stream.list_shards()


def kcl_row(shard: str, checkpoint: str = "TRIM_HORIZON", sub: int = 0, **more: dict[str, Any]) -> dict[str, Any]:
    """A lease as KCL writes it."""
    return {
        "leaseKey": {"S": shard},
        "checkpoint": {"S": checkpoint},
        "checkpointSubSequenceNumber": {"N": str(sub)},
        "leaseCounter": {"N": "7"},
        "leaseOwner": {"S": "worker-1"},
        "ownerSwitchesSinceCheckpoint": {"N": "0"},
    } | more


class Bench:
    """One world, over which any number of migrators may run.

    The stream: shard 0 was split into 2 and 3, shard 1 is open; records everywhere. The table: 0 finished, 1 in the middle of an aggregate, 2 just
    created; KCL has not seen 3 yet.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = Calls()
        self.stream = StreamTwin("orders", shards=2, now=lambda: 1_700_000_000_000 + round(self.seconds * 1000))
        self.zero, self.one = "shardId-000000000000", "shardId-000000000001"
        self.stream.put_in(self.zero, b"a")
        self.reached = self.stream.put_in(self.one, b"b")
        self.two, self.three = self.stream.split(self.zero)
        rows: list[RawItem] = [
            kcl_row(self.zero, "SHARD_END", childShardIds={"SS": [self.two, self.three]}),
            kcl_row(self.one, self.reached, 3),
            kcl_row(self.two, parentShardId={"SS": [self.zero]}),
        ]
        self.sources = MemorySources({SOURCE: (KCL_KEYS, rows)}, self.calls)
        self.targets = MemoryTargets(hook=self.calls)
        self.request = Request(SOURCE, TARGET)
        self._tokens = count(1)

    @property
    def rows(self) -> list[Any]:
        """The source's rows, to be changed."""
        return self.sources.tables[SOURCE][1]

    @property
    def table(self) -> MemoryTable:
        """The target."""
        return self.targets.tables[TARGET]

    def world(self) -> World:
        """The ports of one process."""
        return World(self.sources, Catalog(self.stream, self.calls), self.targets, self._clock, self._sleep, lambda: f"token-{next(self._tokens)}")

    def migrator(self, **changes: Any) -> Migrator:
        """A new process that is to migrate."""
        return Migrator(replace(self.request, **changes), self.world())

    def move(self) -> None:
        """What a worker that lives does every few seconds: it renews its leases, and here it checkpoints too."""
        self.reached = self.stream.put_in(self.one, b"later")
        self.rows[1]["checkpoint"] = {"S": self.reached}
        self.rows[1]["leaseCounter"] = {"N": str(int(self.rows[1]["leaseCounter"]["N"]) + 1)}

    def end_state(self) -> dict[str, Item]:
        """The target without what is random or counted: tokens, ids, the claim's generations."""
        volatile = {"token", "consumerId", "generation", "counter", "now"}
        rows = self.table.rows.items()
        return {i: {k: v for k, v in row.items() if k not in volatile} if i in {CONSUMER, MIGRATION} else dict(row) for i, row in rows}

    def places(self) -> dict[str, Item]:
        """Where each shard of the target starts."""
        return {i.removeprefix(SHARD_PREFIX): row["start"] for i, row in self.table.rows.items() if i.startswith(SHARD_PREFIX)}

    def _clock(self) -> float:
        return self.seconds

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.calls("before", "wake", seconds)


@dataclass(frozen=True)
class Golden:
    """A dump: the raw rows of the lease table, the stream, and where each shard stands."""

    name: str
    document: dict[str, Any]

    @property
    def rows(self) -> list[RawItem]:
        """The lease table's rows, as a DynamoDB client returns them."""
        return [{name: _bytes(tagged) for name, tagged in item.items()} for item in self.document["tables"][self.name]["items"]]

    @property
    def stream(self) -> dict[str, Any]:
        """The (first) stream's part of the dump."""
        return next(iter(self.document["streams"].values()))

    @property
    def stands(self) -> dict[str, Any]:
        """Where each shard stands, as the dump's authors derived it: a list or None."""
        return {shard: derived["stored_position"] for shard, derived in self.stream["derived"].items()}

    def describe(self) -> StreamIdentity:
        """The stream's identity, as a catalog tells it."""
        summary = self.stream["summary"]
        created = round(summary["StreamCreationTimestamp"] * 1000)
        return StreamIdentity(summary["StreamName"], summary["StreamARN"], created, 86_400_000, "ACTIVE")

    def list_shards(self) -> ShardList:
        """The stream's shards, as a catalog tells them."""
        return ShardList(tuple(map(_shard, self.stream["shards"])), 1_795_230_000_000)


def _bytes(tagged: dict[str, Any]) -> dict[str, Any]:
    return {"B": base64.b64decode(tagged["B"])} if "B" in tagged else tagged


def _shard(said: dict[str, Any]) -> Shard:
    parents = tuple(said[k] for k in ("ParentShardId", "AdjacentParentShardId") if said.get(k))
    hashes, numbers = said["HashKeyRange"], said["SequenceNumberRange"]
    return Shard(
        said["ShardId"],
        parents,
        int(hashes["StartingHashKey"]),
        int(hashes["EndingHashKey"]),
        numbers["StartingSequenceNumber"],
        numbers.get("EndingSequenceNumber"),
    )


@pytest.fixture
def bench() -> Bench:
    """One world."""
    return Bench()


@pytest.fixture
def new_bench() -> Callable[[], Bench]:
    """Makes worlds, all alike."""
    return Bench


@pytest.fixture
def crash() -> type[BaseException]:
    """What a process that is gone leaves behind."""
    return Crash


@pytest.fixture
def lease() -> Callable[..., dict[str, Any]]:
    """Makes leases as KCL writes them."""
    return kcl_row


@pytest.fixture
def golden() -> Callable[[str], Golden]:
    """Reads a dump by its name."""
    return lambda name: Golden(name, json.loads((GOLDEN / f"{name}.json").read_text()))
