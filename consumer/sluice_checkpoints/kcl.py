"""Lease tables of the Kinesis Client Library 1, 2 and 3, single stream.

Key `leaseKey` (HASH, S) = shard id. Attributes and their types are those of KCL's `DynamoDBLeaseSerializer`, checked against tables that KCL 1.15,
2.7, 3.4 and 3.5 wrote (tests/checkpoints/golden). Since 3.5 other rows stand among the leases; they are known by `entityType` or by name and
skipped. Everything else is refused by row: an attribute of a version that nobody has looked at may be the one that holds the place.
"""

from __future__ import annotations

import re

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.model import END, SEQUENCE_NUMBER, TRIM_HORIZON, Position
from sluice_checkpoints.source import KeySchema, RawItem, Reading, Snapshot, SourceShard, Stored, refuse_all
from sluice_checkpoints.stream import StreamIdentity

SHARD_ID = re.compile(r"shardId-[0-9]{12}")
# MultiStreamLease: `<account>:<stream>:<creation epoch>:<shard id>`.
MULTI_STREAM = re.compile(r"[0-9]+:[^:]+:[0-9]+:.+")

LEASE = "LEASE"
# EntityType of KCL 3.5, everything but LEASE.
OTHER_ENTITIES = frozenset({"STREAM", "STREAM_INFO", "LEADER", "CLIENT_VERSION_MIGRATION", "TABLE_MIGRATION", "WORKER_METRIC_STATS"})
# The same rows where an older version wrote them, without an entityType.
OTHER_ROWS = frozenset({"Leader", "Migration3.0", "TableMigration3.5"})

# `pendingCheckpointState` holds the application's bytes; KCL's serializer writes a number there when it creates a lease.
TYPES: dict[str, frozenset[str]] = {
    "leaseKey": frozenset("S"),
    "leaseOwner": frozenset("S"),
    "leaseCounter": frozenset("N"),
    "ownerSwitchesSinceCheckpoint": frozenset("N"),
    "checkpoint": frozenset("S"),
    "checkpointSubSequenceNumber": frozenset("N"),
    "pendingCheckpoint": frozenset("S"),
    "pendingCheckpointSubSequenceNumber": frozenset("N"),
    "pendingCheckpointState": frozenset("BN"),
    "parentShardId": frozenset({"SS"}),
    "childShardIds": frozenset({"SS"}),
    "startingHashKey": frozenset("S"),
    "endingHashKey": frozenset("S"),
    "throughputKBps": frozenset("N"),
    "checkpointOwner": frozenset("S"),
    "entityType": frozenset("S"),
}
SENTINELS = {
    "TRIM_HORIZON": Stored("TRIM_HORIZON", TRIM_HORIZON),
    "SHARD_END": Stored("SHARD_END", END),
    "LATEST": Stored("LATEST"),
    "AT_TIMESTAMP": Stored("AT_TIMESTAMP", at_timestamp=True),
}


class Kcl:
    """The reader. A lease is renewed every few seconds (a third of failoverTimeMillis, 10 s by default), so a minute without change is rest."""

    name = "kcl"
    keys = "leaseKey HASH S"
    quiet_seconds = 60.0

    def fits(self, keys: KeySchema) -> bool:
        """See `Format.fits`."""
        return [str(key) for key in keys] == [self.keys]

    def companions(self, table: str) -> tuple[str, ...]:
        """None: the leases' own counters move when a worker lives."""
        del table
        return ()

    def parse(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        """See `Format.parse`."""
        shards: list[SourceShard] = []
        skipped: list[str] = []
        problems: list[str] = []
        for item in sorted(snapshot.rows, key=snapshot.label):
            try:
                other = _other(item)
                if other:
                    skipped.append(f"{snapshot.label(item)}: {other}")
                else:
                    shards.append(_lease(item, stream.name))
            except Refused as refused:
                problems.append(f"row {snapshot.label(item)}: {refused}")
        refuse_all(f"table {snapshot.table} has rows that are not understood", problems)
        return Reading(self.name, tuple(shards), tuple(skipped), finished_rows_vanish=True)


def _other(item: RawItem) -> str | None:
    """What a row is that is known not to be a lease; None for a lease.

    Raises:
        Refused: nobody knows what it is.
    """
    kind = _text(item, "entityType") if "entityType" in item else None
    name = _text(item, "leaseKey")
    if kind in OTHER_ENTITIES or (kind is None and name in OTHER_ROWS):
        if "checkpoint" in item:
            raise Refused(f"entityType {kind or name} is no lease, yet the row has a checkpoint")
        return kind or name
    if kind not in {None, LEASE}:
        raise Refused(f"unknown entityType {kind!r}")
    return None


def _lease(item: RawItem, stream: str) -> SourceShard:
    shard_id = _text(item, "leaseKey")
    if MULTI_STREAM.fullmatch(shard_id) or "streamName" in item:
        raise Refused(f"leaseKey {shard_id!r} is of a table with several streams; this version takes over tables of one stream ({stream}) only")
    if not SHARD_ID.fullmatch(shard_id):
        raise Refused(f"leaseKey {shard_id!r} is no shard id")
    _check_types(item)
    return SourceShard(
        id=shard_id,
        stored=_stored(_text(item, "checkpoint"), _number(item, "checkpointSubSequenceNumber")),
        parents=_shard_ids(item, "parentShardId"),
        children=_shard_ids(item, "childShardIds"),
        notes=_notes(item),
    )


def _check_types(item: RawItem) -> None:
    for name, tagged in item.items():
        (tag,) = tagged
        if name not in TYPES:
            raise Refused(f"unknown attribute {name} (type {tag})")
        if tag not in TYPES[name]:
            raise Refused(f"attribute {name} has type {tag}, expected {' or '.join(sorted(TYPES[name]))}")
    if "leaseCounter" not in item:
        raise Refused("attribute leaseCounter is missing")
    _number(item, "leaseCounter")


def _stored(checkpoint: str, sub: int) -> Stored:
    """Digits mean "done up to user record `sub` of that Kinesis record", for a record that is no aggregate `sub` is 0."""
    if checkpoint in SENTINELS:
        return SENTINELS[checkpoint]
    if not SEQUENCE_NUMBER.fullmatch(checkpoint):
        raise Refused(f"checkpoint {checkpoint!r} is neither a sequence number nor one of {', '.join(SENTINELS)}")
    return Stored(f"{checkpoint}/{sub}", Position.after(checkpoint, sub))


def _notes(item: RawItem) -> tuple[str, ...]:
    """A prepared checkpoint is a promise the application never confirmed: `checkpoint` is where it stands, as KCL itself would resume."""
    if "pendingCheckpoint" not in item:
        return ()
    pending = _text(item, "pendingCheckpoint")
    _stored(pending, _number(item, "pendingCheckpointSubSequenceNumber"))
    state = " its application state (pendingCheckpointState) stays behind" if "pendingCheckpointState" in item else ""
    return (f"a prepared checkpoint {pending} was never confirmed and does not count;{state}".rstrip(";"),)


def _text(item: RawItem, name: str) -> str:
    if name not in item:
        raise Refused(f"attribute {name} is missing")
    ((tag, value),) = item[name].items()
    if tag != "S":
        raise Refused(f"attribute {name} has type {tag}, expected S")
    return str(value)


def _number(item: RawItem, name: str) -> int:
    """A count; one that is missing is 0, as KCL's ExtendedSequenceNumber reads it: then a record may come again, and none is passed over."""
    text = str(item.get(name, {"N": "0"}).get("N", ""))
    if not (text.isascii() and text.isdigit()):
        raise Refused(f"{name} {text!r} is not a whole number of 0 or more")
    return int(text)


def _shard_ids(item: RawItem, name: str) -> frozenset[str]:
    ids = frozenset(map(str, item.get(name, {"SS": []})["SS"]))
    if strange := sorted(i for i in ids if not SHARD_ID.fullmatch(i)):
        raise Refused(f"{name} holds {strange[0]!r}, which is no shard id")
    return ids
