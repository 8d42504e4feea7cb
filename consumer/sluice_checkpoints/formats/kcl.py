"""Lease tables of the Kinesis Client Library 1, 2 and 3, of one stream or of several.

Key `leaseKey` (HASH, S) = shard id, or `<account>:<stream>:<creation second>:<shard id>`. Attributes and their types are those of KCL's
`DynamoDBLeaseSerializer`, checked against tables that KCL 1.15, 2.7, 3.4 and 3.5 wrote (tests/checkpoints/golden). Since 3.5 other rows are among
the leases; 3.0 to 3.4 keep them in two tables beside. They are known by `entityType` or by name and skipped. Everything else is refused by row: an
attribute of a version that was not examined may be the one that holds the position.

On the way back: KCL continues **at** the record of its checkpoint and drops user records up to (sequence, sub-sequence). Both are compared as
numbers, the latter as a Java long (`ExtendedSequenceNumber.compareTo`, `ProcessTask.filterAndGetMaxExtendedSequenceNumber`; an iterator
AT_SEQUENCE_NUMBER in `KinesisDataFetcher`). It stores the sub-sequence as N and reads it by `new Long` or `Long.valueOf` (`DynamoUtils.safeGetLong`).
It checks only that it is not negative (`ShardRecordProcessorCheckpointer.checkpoint`, on the application's own calls). So a record that is done as a
whole has the largest long there is. No user record of it comes again, however many it holds, and every later record is larger (tried with KCL 3.0's
own class).
"""

from __future__ import annotations

import re
from dataclasses import replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.reader import (
    SHARD_ID,
    FormatReader,
    OtherStream,
    Problem,
    Reading,
    SortedRows,
    SourceShard,
    StoredPosition,
    UnrelatedRow,
    check_types,
    count,
    read_rows,
    shard_ids,
    text,
    text_or_none,
)
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem, Snapshot, TableKey
from sluice_checkpoints.formats.writer import FormatWriter, RowContent
from sluice_checkpoints.position import END, SEQUENCE_NUMBER, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import StreamIdentity

KEY = (TableKey("leaseKey", "HASH", "S"),)
# KCL 3.0 to 3.4: who leads, and how loaded each worker is. A worker that lives writes the latter every 30 s.
SIDE_TABLES = ("-CoordinatorState", "-WorkerMetricStats")
# StreamIdentifier.serialize of a multi-stream lease; the epoch is StreamCreationTimestamp in whole seconds.
MULTI_STREAM = re.compile(r"(?P<account>[0-9]+):(?P<stream>[^:]+):(?P<epoch>[0-9]+):(?P<shard>.+)")

LEASE = "LEASE"
# EntityType of KCL 3.5, everything but LEASE.
OTHER_ENTITIES = frozenset({"STREAM", "STREAM_INFO", "LEADER", "CLIENT_VERSION_MIGRATION", "TABLE_MIGRATION", "WORKER_METRIC_STATS"})
# The same rows where an older version wrote them, without an entityType.
OTHER_ROWS = frozenset({"Leader", "Migration3.0", "TableMigration3.5"})

# `pendingCheckpointState` holds the application's bytes; KCL's serializer writes a number there when it creates a lease.
TYPES = {
    "leaseKey": "S",
    "leaseOwner": "S",
    "leaseCounter": "N",
    "ownerSwitchesSinceCheckpoint": "N",
    "checkpoint": "S",
    "checkpointSubSequenceNumber": "N",
    "pendingCheckpoint": "S",
    "pendingCheckpointSubSequenceNumber": "N",
    "pendingCheckpointState": "B N",
    "parentShardId": "SS",
    "childShardIds": "SS",
    "startingHashKey": "S",
    "endingHashKey": "S",
    "throughputKBps": "N",
    "checkpointOwner": "S",
    "entityType": "S",
}
MULTI_TYPES = TYPES | {"streamName": "S", "shardId": "S"}
# A sub-sequence that no user record exceeds (Java's Long.MAX_VALUE): the whole Kinesis record is done. Only Sluice writes it (`_sub`).
WHOLE_RECORD = 2**63 - 1
SENTINELS = {
    "TRIM_HORIZON": StoredPosition("TRIM_HORIZON", TRIM_HORIZON),
    "SHARD_END": StoredPosition("SHARD_END", END),
    "LATEST": StoredPosition("LATEST"),
    "AT_TIMESTAMP": StoredPosition("AT_TIMESTAMP", at_timestamp=True),
}
# Owners, and what an application had prepared and never confirmed.
TAKEN_OUT = frozenset({"leaseOwner", "checkpointOwner", "pendingCheckpoint", "pendingCheckpointSubSequenceNumber", "pendingCheckpointState"})
WORDS = {"TRIM_HORIZON": "TRIM_HORIZON", "END": "SHARD_END"}


class Kcl(FormatReader):
    """The reader. A lease is renewed every few seconds (a third of failoverTimeMillis, 10 s by default), so a minute without change is rest."""

    name = "kcl"
    keys = "leaseKey HASH S"
    key = KEY
    attributes = frozenset(MULTI_TYPES)

    def companions(self, table: str, keys: KeySchema | None) -> tuple[str, ...]:
        """The two tables of KCL 3.0 to 3.4."""
        return tuple(table + suffix for suffix in SIDE_TABLES) if keys == KEY else ()

    def quiet_seconds(self, snapshot: Snapshot) -> float:
        """Two of the worker metrics' periods; a lease moves more often."""
        del snapshot
        return 60.0

    def read(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        rows = read_leases(snapshot, stream)
        return Reading(self.name, rows.shards, rows.skipped, finished_rows_vanish=True, problems=rows.problems)


def read_leases(snapshot: Snapshot, stream: StreamIdentity) -> SortedRows:
    """The leases of this stream in the main table; in one of several streams it is a problem of the table if none is this one's."""
    names = [match for item in snapshot.rows if (match := _several(item))]
    today = any(_of(match, stream) and _epoch(match) == _second(stream) for match in names)
    rows = read_rows(snapshot, snapshot.table, lambda item: _multi_lease(item, stream, today=today) if names else _single_lease(item))
    if names and not rows.shards and not rows.problems:
        streams = sorted({f"{match['stream']} in account {match['account']}" for match in names})
        why = OtherStream(
            f"table {snapshot.table} has no lease of stream {stream.name} in account {_account(stream)}, but of {', '.join(streams[:10])}"
        )
        return replace(rows, problems=(Problem(snapshot.table, None, why),))
    return rows


def multi_stream_keys(snapshot: Snapshot) -> list[str]:
    """Keys of leases that name their stream, in the main table; a worker's name in a row of its own may look like one."""
    return sorted(text(item, "leaseKey") for item in snapshot.rows if _several(item))


def _several(item: RawItem) -> re.Match[str] | None:
    """The parts of a lease key that names its stream; the key of another entity may look like one."""
    return None if item.get("entityType", {}).get("S") in OTHER_ENTITIES else MULTI_STREAM.fullmatch(text(item, "leaseKey"))


def _of(match: re.Match[str], stream: StreamIdentity) -> bool:
    return (match["account"], match["stream"]) == (_account(stream), stream.name)


def _account(stream: StreamIdentity) -> str:
    return stream.arn.split(":")[4]


def _epoch(match: re.Match[str]) -> int:
    return int(match["epoch"])


def _second(stream: StreamIdentity) -> int:
    return stream.created_millis // 1000


def _single_lease(item: RawItem) -> SourceShard:
    _skip_others(item)
    check_types(item, TYPES)
    return _lease(item, text(item, "leaseKey"))


def _multi_lease(item: RawItem, stream: StreamIdentity, *, today: bool) -> SourceShard:
    """A lease key without a stream beside others that have one could be anybody's.

    KCL keeps the leases of an earlier stream of the name. They are skipped if there are leases of `today`'s.
    """
    _skip_others(item)
    match = _several(item)
    if not match:
        raise Refused("leaseKey names no stream, though others in this table do: the stream of this one is unknown")
    if not _of(match, stream):
        raise UnrelatedRow(f"of stream {match['stream']} in account {match['account']}")
    if _epoch(match) != _second(stream):
        if today:
            raise UnrelatedRow(f"of an earlier stream {stream.name}, created at {match['epoch']}")
        raise OtherStream(f"it is of a stream {stream.name} created at {match['epoch']}, and today's was created at {_second(stream)}")
    check_types(item, MULTI_TYPES)
    return _lease(item, match["shard"])


def _skip_others(item: RawItem) -> None:
    """Raises `UnrelatedRow` for a row that is known not to be a lease, and `Refused` for a row that is not known."""
    kind = text_or_none(item, "entityType")
    name = text(item, "leaseKey")
    if kind in OTHER_ENTITIES or (kind is None and name in OTHER_ROWS):
        if "checkpoint" in item:
            raise Refused(f"entityType {kind or name} is not a lease, yet the row has a checkpoint")
        raise UnrelatedRow(kind or name)
    if kind not in {None, LEASE}:
        raise Refused(f"unknown entityType {kind!r}")


def _lease(item: RawItem, shard: str) -> SourceShard:
    if not SHARD_ID.fullmatch(shard):
        raise Refused(f"leaseKey {text(item, 'leaseKey')!r} is not a shard id")
    if "leaseCounter" not in item:
        raise Refused("attribute leaseCounter is missing")
    count(item, "leaseCounter")
    return SourceShard(
        id=shard,
        stored=_stored(text(item, "checkpoint"), count(item, "checkpointSubSequenceNumber")),
        parents=shard_ids(item, "parentShardId"),
        children=shard_ids(item, "childShardIds"),
        notes=(*_pending(item), *_handoff(item)),
    )


def _stored(checkpoint: str, sub: int, attribute: str = "checkpoint") -> StoredPosition:
    """Digits mean "done up to user record `sub` of that Kinesis record"; where it is missing, and for a record that is not an aggregate, it is 0."""
    if checkpoint in SENTINELS:
        return SENTINELS[checkpoint]
    if not SEQUENCE_NUMBER.fullmatch(checkpoint):
        raise Refused(f"{attribute} {checkpoint!r} is neither a sequence number nor one of {', '.join(SENTINELS)}")
    return StoredPosition(f"{checkpoint}/{sub}", Position.after(checkpoint, None if sub == WHOLE_RECORD else sub))


def _pending(item: RawItem) -> tuple[str, ...]:
    """A prepared checkpoint is a promise the application never confirmed: `checkpoint` is its position, where KCL itself would resume."""
    pending = text_or_none(item, "pendingCheckpoint")
    if pending is None:
        return ()
    _stored(pending, count(item, "pendingCheckpointSubSequenceNumber"), "pendingCheckpoint")
    state = "; its application state (pendingCheckpointState) stays behind" if "pendingCheckpointState" in item else ""
    return (f"a prepared checkpoint {pending} was never confirmed and does not count{state}",)


def _handoff(item: RawItem) -> tuple[str, ...]:
    """While a lease is handed over, `checkpointOwner` is its old owner, which may still checkpoint: the position is the row's in any case."""
    old = text_or_none(item, "checkpointOwner")
    return () if old is None else (f"was being handed over by {old} when its consumer stopped; its position is the last one written",)


def _row(place: RowContent, had: RawItem) -> RawItem:
    position = place.position or TRIM_HORIZON
    shard = place.shard
    row = {name: tagged for name, tagged in had.items() if name not in TAKEN_OUT} | {
        "leaseKey": {"S": shard.id},
        "checkpoint": {"S": position.sequence or WORDS[position.at]},
        "checkpointSubSequenceNumber": {"N": str(_sub(position))},
        "ownerSwitchesSinceCheckpoint": {"N": "0"},
        "startingHashKey": {"S": str(shard.starting_hash)},
        "endingHashKey": {"S": str(shard.ending_hash)},
    }
    row |= {"parentShardId": {"SS": sorted(shard.parents)}} if shard.parents else {}
    return row | ({"childShardIds": {"SS": sorted(place.children)}} if position.at == "END" and place.children else {})


def _sub(position: Position) -> int:
    if position.sequence is None:
        return 0
    return WHOLE_RECORD if position.sub is None else position.sub


def _stamp(_place: RowContent, had: RawItem) -> RawItem:
    """The counter is what KCL's own conditions ask for: a worker that slept and wakes up finds another and gives up."""
    return {"leaseCounter": {"N": str(count(had, "leaseCounter") + 1 if had else 0)}}


KCL = FormatWriter(Kcl(), KEY, TYPES, _row, _stamp, supports_subsequence=True)
