"""NiFi's tables (2.10 and later), whole or left behind by an interrupted migration of its own.

Key `streamName` (HASH, S), `shardId` (RANGE, S). NiFi resumes after the whole Kinesis record of `sequenceNumber`; no end of a shard is stored. Its
migration from a KCL table copies into `<table>_migration`, deletes the main table, makes it anew and copies back; a crash between any two of these
steps leaves the places in the KCL table, in `_migration`, or partly in both (NIFI-16003). All that is there is read, and where two tables have a
row the higher place counts: a copy is never ahead of what it was copied from, and NiFi itself only moves the main table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sluice_checkpoints import kcl
from sluice_checkpoints.attributes import check_types, count, shard_id, text, text_or_none
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.model import SEQUENCE_NUMBER, Position
from sluice_checkpoints.source import Key, KeySchema, RawItem, Reading, Rows, Snapshot, SourceShard, Stored, Unrelated, read_rows
from sluice_checkpoints.stream import StreamIdentity

KEY = (Key("streamName", "HASH", "S"), Key("shardId", "RANGE", "S"))
HALF_MADE = "_migration"
NODE, MARKER = "__node__#", "__migration__"
ROW = {"streamName": "S", "shardId": "S", "lastUpdateTimestamp": "N"}
SHARD_TYPES = ROW | {"sequenceNumber": "S", "subSequenceNumber": "N", "leaseOwner": "S", "leaseExpiry": "N"}
NODE_TYPES = ROW | {"nodeHeartbeat": "N"}
MARKER_TYPES = ROW | {
    "migrationStatus": "S",
    "migrationOwner": "S",
    "migrationStartedAt": "N",
    "migrationCompletedAt": "N",
    "renameOwner": "S",
    "renameStartedAt": "N",
}
ROWLESS = "NiFi stores no row before the first checkpoint, and its migration from KCL drops the rows of finished and of unstarted shards"


class Nifi:
    """The reader. A node beats and renews its leases every 10 s, and an interrupted migration is tried again within six minutes at most."""

    name = "nifi"
    keys = "streamName HASH S, shardId RANGE S"

    def companions(self, table: str, keys: KeySchema | None) -> tuple[str, ...]:
        """The half-made table, and beside a KCL table what that has."""
        if keys not in {None, KEY, kcl.KEY}:
            return ()
        return (table + HALF_MADE, *kcl.Kcl().companions(table, keys))

    def fits(self, table: str, schemas: Mapping[str, KeySchema]) -> bool:
        """NiFi's own key; or no main table, or KCL's, beside a half-made one of NiFi's key."""
        main, half = schemas.get(table), schemas.get(table + HALF_MADE)
        return main == KEY or (half == KEY and main in {None, kcl.KEY})

    def quiet(self, snapshot: Snapshot) -> float:
        """Six times the lease refresh, and as long as KCL needs."""
        del snapshot
        return 60.0

    def parse(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        """See `Format.parse`."""
        legacy = snapshot.keys.get(snapshot.table) == kcl.KEY
        main = kcl.read_leases(snapshot, stream) if legacy else _read(snapshot, snapshot.table, stream)
        half = _read(snapshot, snapshot.table + HALF_MADE, stream)
        shards = tuple(_higher(main.shards, half.shards))
        if not shards:
            raise Refused(f"table {snapshot.table} has no row of a shard of stream {stream.name}, nor has {snapshot.table}{HALF_MADE}")
        rowless = None if legacy else ROWLESS
        skipped = (*main.skipped, *half.skipped)
        return Reading(self.name, shards, skipped, finished_rows_vanish=legacy, rowless=rowless, notes=tuple(_notes(snapshot)))


def _read(snapshot: Snapshot, table: str, stream: StreamIdentity) -> Rows:
    return read_rows(snapshot, table, lambda item: _shard(item, stream.name))


def _shard(item: RawItem, stream: str) -> SourceShard:
    name = text(item, "shardId")
    if name == MARKER:
        check_types(item, MARKER_TYPES)
        raise Unrelated("marker of NiFi's own migration")
    if name.startswith(NODE):
        check_types(item, NODE_TYPES)
        raise Unrelated("heartbeat of a node")
    check_types(item, SHARD_TYPES)
    if text(item, "streamName") != stream:
        raise Unrelated(f"of stream {text(item, 'streamName')}")
    return SourceShard(shard_id(item, "shardId"), _stored(item))


def _stored(item: RawItem) -> Stored:
    """Sub-sequence 0 is written for a plain record, and by the migration for every one; NiFi resumes after the whole record whatever it is."""
    sequence, sub = text_or_none(item, "sequenceNumber"), count(item, "subSequenceNumber")
    if sequence is None:
        return Stored("no sequenceNumber")
    if not SEQUENCE_NUMBER.fullmatch(sequence):
        raise Refused(f"sequenceNumber {sequence!r} is not a sequence number")
    return Stored(f"{sequence}/{sub}" if sub else sequence, Position.after(sequence, sub or None))


def _higher(main: Iterable[SourceShard], half: Iterable[SourceShard]) -> Iterable[SourceShard]:
    """Of two rows for a shard the higher; the main table's if both stand at one record, for a KCL row knows the place inside an aggregate."""
    copies = {row.id: row for row in half}
    for row in main:
        copy = copies.pop(row.id, None)
        if copy is None or _number(copy) <= _number(row):
            yield row
        else:
            note = f"stands further in the half-made table ({copy.stored.text}) than in the main one ({row.stored.text}); the former counts"
            yield replace(row, stored=copy.stored, notes=(*row.notes, note))
    yield from copies.values()


def _number(row: SourceShard) -> float | int:
    position = row.stored.position
    if position is None or position.at == "TRIM_HORIZON":
        return -1
    return float("inf") if position.sequence is None else int(position.sequence)


def _notes(snapshot: Snapshot) -> Iterable[str]:
    half = snapshot.table + HALF_MADE
    if half not in snapshot.tables:
        return
    main = "is not there" if snapshot.table not in snapshot.tables else "is still KCL's" if snapshot.keys[snapshot.table] == kcl.KEY else "is NiFi's"
    yield (
        f"NiFi's own migration was interrupted: {half} is there, and the main table {main}. Do not start NiFi on it again; its next start may "
        "delete the only copy (NIFI-16003)"
    )
