"""A small stream, and dumps over it with tables written by hand: in states of which the project has no real dump.

Five shards: 0 was split into 2 and 3, and 3 was merged with 1 into 4, so 2 and 4 are open. Each has six Kinesis records; number 3 is an aggregate of
four user records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from takeover.dumps import FORMAT, Dump

STREAM = "orders"
ARN = f"arn:aws:kinesis:us-east-1:000000000000:stream/{STREAM}"
CREATED = 1_795_200_000  # epoch seconds
PARENTS: Mapping[int, tuple[int, ...]] = {0: (), 1: (), 2: (0,), 3: (0,), 4: (3, 1)}
CLOSED = frozenset({0, 1, 3})
HASHES = {0: (0, 49), 1: (50, 99), 2: (0, 24), 3: (25, 49), 4: (25, 99)}
RECORDS, AGGREGATE, USERS = 6, 3, 4
SECONDS_OF_A_SHARD = 100  # its records arrive one a second, later than those of shards with a lower number

Item = dict[str, dict[str, Any]]  # a row with its type tags
Keys = Mapping[str, str]  # attribute → HASH or RANGE; all are strings
Start = tuple[int, int]  # Kinesis record and user record

EVERYTHING: Start = (0, 0)
NOTHING: Start = (RECORDS, 0)


def shard_id(shard: int) -> str:
    return f"shardId-{shard:012d}"


def sequence(shard: int, record: int) -> str:
    """The number of a record: 56 digits, growing within a shard and from parent to child."""
    return str(4968 * 10**52 + (shard + 1) * 10**40 + (record + 1) * 10**20)


def arrival(shard: int, record: int) -> int:
    """When a record arrived, in epoch seconds."""
    return CREATED + SECONDS_OF_A_SHARD * (shard + 1) + record


def after(record: int) -> Start:
    return record + 1, 0


def text(value: str) -> dict[str, str]:
    return {"S": value}


def number(value: int) -> dict[str, str]:
    return {"N": str(value)}


@dataclass(frozen=True)
class Table:
    keys: Keys
    rows: Sequence[Item] = ()

    def document(self) -> dict[str, Any]:
        keys = [{"AttributeName": name, "KeyType": kind} for name, kind in self.keys.items()]
        types = [{"AttributeName": name, "AttributeType": "S"} for name in self.keys]
        return {"describe": {"KeySchema": keys, "AttributeDefinitions": types}, "items": list(self.rows)}


def dump(name: str, tables: Mapping[str, Table], must: Sequence[Start]) -> Dump:
    """A dump; `must` has, for each of the five shards, the first user record that a take-over delivers."""
    stream = {
        "summary": _summary(),
        "shards": [_shard(i) for i in PARENTS],
        "records": {shard_id(i): [_record(i, n) for n in range(RECORDS)] for i in PARENTS},
        "derived": {shard_id(i): {"must_deliver": _from(i, start)} for i, start in enumerate(must)},
    }
    document = {"format": FORMAT, "streams": {STREAM: stream}, "tables": {table: rows.document() for table, rows in tables.items()}}
    return Dump(f"handmade-{name}", document)


def _from(shard: int, start: Start) -> list[list[Any]]:
    users = [(n, sub) for n in range(RECORDS) for sub in range(USERS if n == AGGREGATE else 1)]
    return [[sequence(shard, n), sub, _payload(shard, n, sub)] for n, sub in users if (n, sub) >= start]


def _payload(*names: int) -> str:
    return hashlib.sha256(str(names).encode()).hexdigest()


def _record(shard: int, n: int) -> dict[str, Any]:
    record = {"seq": sequence(shard, n), "pk": f"key-{n}", "sha256": _payload(shard, n, 0), "arrival": arrival(shard, n)}
    users = [{"sub": sub, "pk": f"user-{sub}", "sha256": _payload(shard, n, sub)} for sub in range(USERS)]
    return record | {"user": users} if n == AGGREGATE else record


def _shard(shard: int) -> dict[str, Any]:
    low, high = HASHES[shard]
    numbers = {"StartingSequenceNumber": sequence(shard, -1)}
    closed = {"EndingSequenceNumber": sequence(shard, RECORDS)} if shard in CLOSED else {}
    return {
        "ShardId": shard_id(shard),
        "HashKeyRange": {"StartingHashKey": str(low), "EndingHashKey": str(high)},
        "SequenceNumberRange": numbers | closed,
        **dict(zip(("ParentShardId", "AdjacentParentShardId"), map(shard_id, PARENTS[shard]), strict=False)),
    }


def _summary() -> dict[str, Any]:
    return {
        "StreamName": STREAM,
        "StreamARN": ARN,
        "StreamStatus": "ACTIVE",
        "StreamCreationTimestamp": CREATED,
        "RetentionPeriodHours": 24,
        "EnhancedMonitoring": [{"ShardLevelMetrics": []}],
        "OpenShardCount": len(PARENTS) - len(CLOSED),
    }
