"""The lease table of the KCL application that Sluice replaces, as KCL 3.5.1 wrote it.

`kcl3_table.json` is a dump. KCL 3.5.1 read an emulated stream with just these shards, one split and one merge, and was stopped with SIGTERM. The dump
has rows of leases, and rows of KCL's own bookkeeping. No row was written by hand. Checkpoints and ranges of hash keys are replaced by those of the
demo's stream, because sequence numbers never repeat; nothing else is replaced.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from sluice_lab.scenario.account import RecordPosition
from sluice_lab.scenario.topology import StreamShard

Item = dict[str, dict[str, Any]]  # a row with type tags, as in DynamoDB's low-level API


def dump() -> dict[str, Any]:
    """The table's description (keys, index) and its rows, unchanged."""
    text = files(__package__).joinpath("kcl3_table.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


def rekeyed(rows: Sequence[Item], shards: Mapping[str, StreamShard], checkpoints: Mapping[str, RecordPosition]) -> list[Item]:
    """The rows, with checkpoints of another stream that was split and merged in the same way.

    Raises:
        ValueError: the leases are of other shards, or the checkpoint of an open lease is missing.
    """
    leases = {row["leaseKey"]["S"] for row in rows if is_lease(row)}
    if leases != set(shards):
        raise ValueError(f"the dump has leases of {sorted(leases)}, the stream has {sorted(shards)}")
    return [_rekeyed(row, shards, checkpoints) if is_lease(row) else row for row in rows]


def unread(shards: Mapping[str, StreamShard]) -> list[Item]:
    """Leases of an application that has just begun with every shard of a stream."""
    lease = next(row for row in dump()["rows"] if is_lease(row) and row["checkpoint"]["S"] != "SHARD_END")
    beginning = {"checkpoint": {"S": "TRIM_HORIZON"}, "checkpointSubSequenceNumber": {"N": "0"}}
    return [lease | beginning | {"leaseKey": {"S": name}} | _hash_keys(shard) for name, shard in shards.items()]


def _hash_keys(shard: StreamShard) -> Item:
    return {"startingHashKey": {"S": str(shard.low)}, "endingHashKey": {"S": str(shard.high)}}


def is_lease(row: Item) -> bool:
    """Whether a row is a shard's lease and not KCL's bookkeeping."""
    return row["entityType"] == {"S": "LEASE"}


def write(dynamodb: Any, table: str, description: Mapping[str, Any], rows: Sequence[Item]) -> None:
    """Create the table as KCL does, and put the rows."""
    dynamodb.create_table(TableName=table, BillingMode="PAY_PER_REQUEST", **description)
    dynamodb.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1})
    for row in rows:
        dynamodb.put_item(TableName=table, Item=row)


def _rekeyed(row: Item, shards: Mapping[str, StreamShard], checkpoints: Mapping[str, RecordPosition]) -> Item:
    shard = shards[row["leaseKey"]["S"]]
    keys = _hash_keys(shard)
    if row["checkpoint"]["S"] == "SHARD_END":
        return row | keys
    if shard.id not in checkpoints:
        raise ValueError(f"{shard.id}: KCL had read a part of it, so a checkpoint is needed")
    position = checkpoints[shard.id]
    at = {"checkpoint": {"S": str(position.sequence)}, "checkpointSubSequenceNumber": {"N": str(position.sub)}}
    return row | keys | at
