"""NiFi's tables (2.10 and later), whole or left behind by an interrupted migration of its own.

Key `streamName` (HASH, S), `shardId` (RANGE, S). `sequenceNumber` means the whole Kinesis record; no end of a shard is stored. Its migration from a
KCL table copies into `<table>_migration`, deletes the main table, creates it again and copies back. A crash between any two of these steps leaves the
positions in the KCL table, in `_migration`, or partly in both (NIFI-16003). All that is there is read, and where two tables have a row the higher
position counts. A copy is never ahead of what it was copied from, and NiFi itself only moves the main table. If a copy of a KCL row is ahead of it
all the same, the KCL row counts.

On the way back: NiFi continues after the whole record of `sequenceNumber` and reads nothing else for that (`KinesisShardManager.readCheckpoint`). It
stores no end of a shard and no word for one that was not started. NiFi itself writes a row without a number when it takes a lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats import kcl
from sluice_checkpoints.formats.reader import (
    FormatReader,
    Problem,
    Reading,
    SortedRows,
    SourceShard,
    StoredPosition,
    UnrelatedRow,
    check_types,
    count,
    read_rows,
    shard_id,
    text,
    text_or_none,
)
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem, Snapshot, TableKey
from sluice_checkpoints.formats.writer import FormatWriter, RowContent
from sluice_checkpoints.position import SEQUENCE_NUMBER, Position
from sluice_checkpoints.stream.model import StreamIdentity

KEY = (TableKey("streamName", "HASH", "S"), TableKey("shardId", "RANGE", "S"))
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
TAKEN_OUT = frozenset({"leaseOwner", "leaseExpiry", "subSequenceNumber", "sequenceNumber"})


class Nifi(FormatReader):
    """The reader. A node beats and renews its leases every 10 s, and an interrupted migration is tried again within six minutes at most."""

    name = "nifi"
    keys = "streamName HASH S, shardId RANGE S"
    key = KEY
    attributes = frozenset((*SHARD_TYPES, *NODE_TYPES, *MARKER_TYPES, *kcl.MULTI_TYPES))

    def companions(self, table: str, keys: KeySchema | None) -> tuple[str, ...]:
        """The half-made table, and beside a KCL table what that has."""
        if keys not in {None, KEY, kcl.KEY}:
            return ()
        return (table + HALF_MADE, *kcl.Kcl().companions(table, keys))

    def fits(self, table: str, schemas: Mapping[str, KeySchema]) -> bool:
        """NiFi's own key; or no main table, or KCL's, beside a half-made one of NiFi's key."""
        main, half = schemas.get(table), schemas.get(table + HALF_MADE)
        return main == KEY or (half == KEY and main in {None, kcl.KEY})

    def quiet_seconds(self, snapshot: Snapshot) -> float:
        """Six times the lease refresh, and as long as KCL needs."""
        del snapshot
        return 60.0

    def read(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        legacy = _kind(snapshot) == "kcl"
        main = _main(snapshot, stream)
        half = _read(snapshot, snapshot.table + HALF_MADE, stream)
        shards = tuple(_higher(main.shards, half.shards, original=legacy))
        problems = (*main.problems, *half.problems)
        if not shards and not problems:
            why = f"table {snapshot.table} has no row of a shard of stream {stream.name}, nor has {snapshot.table}{HALF_MADE}"
            problems = (Problem(snapshot.table, None, Refused(why)),)
        rowless = None if legacy else ROWLESS
        skipped = (*main.skipped, *half.skipped)
        return Reading(self.name, shards, skipped, finished_rows_vanish=legacy, rowless=rowless, notes=tuple(_notes(snapshot)), problems=problems)


def _main(snapshot: Snapshot, stream: StreamIdentity) -> SortedRows:
    return kcl.read_leases(snapshot, stream) if _kind(snapshot) == "kcl" else _read(snapshot, snapshot.table, stream)


def _read(snapshot: Snapshot, table: str, stream: StreamIdentity) -> SortedRows:
    return read_rows(snapshot, table, lambda item: _shard(item, stream.name))


def _shard(item: RawItem, stream: str) -> SourceShard:
    name = text(item, "shardId")
    if name == MARKER:
        check_types(item, MARKER_TYPES)
        raise UnrelatedRow("marker of NiFi's own migration")
    if name.startswith(NODE):
        check_types(item, NODE_TYPES)
        raise UnrelatedRow("heartbeat of a node")
    check_types(item, SHARD_TYPES)
    if text(item, "streamName") != stream:
        raise UnrelatedRow(f"of stream {text(item, 'streamName')}")
    return SourceShard(shard_id(item, "shardId"), _stored(item))


def _stored(item: RawItem) -> StoredPosition:
    """The whole record, unless the row says less of it.

    NiFi itself resumes after the whole record whatever `subSequenceNumber` says. That is the last user record that was handed over, so what follows
    in that aggregate may never have been. A plain record has 0. In a row that NiFi copied from KCL 0 means any number: KCL had done user record
    0 at least.
    """
    sequence = text_or_none(item, "sequenceNumber")
    sub = count(item, "subSequenceNumber") if "subSequenceNumber" in item else None
    if sequence is None:
        return StoredPosition("no sequenceNumber")
    if not SEQUENCE_NUMBER.fullmatch(sequence):
        raise Refused(f"sequenceNumber {sequence!r} is not a sequence number")
    return StoredPosition(f"{sequence}/{sub}" if sub else sequence, Position.after(sequence, sub))


def _higher(main: Iterable[SourceShard], half: Iterable[SourceShard], *, original: bool) -> Iterable[SourceShard]:
    """Of two rows for a shard the higher; the main table's if both are at one record, for a KCL row knows the position inside an aggregate.

    A copy is never ahead of its `original`, KCL's row. One that is was made of another stream's, or somebody has rewound KCL since: the original
    counts.
    """
    copies = {row.id: row for row in half}
    for row in main:
        copy = copies.pop(row.id, None)
        if copy is None or _number(copy) <= _number(row):
            yield row
        elif original and _number(row) >= 0:
            note = f"is further in the half-made table ({copy.stored.text}) than in KCL's row ({row.stored.text}), its original; that one counts"
            yield replace(row, notes=(*row.notes, note))
        else:
            note = f"is further in the half-made table ({copy.stored.text}) than in the main one ({row.stored.text}); the former counts"
            yield replace(row, stored=copy.stored, notes=(*row.notes, note))
    yield from copies.values()


def _number(row: SourceShard) -> float | int:
    position = row.stored.position
    if position is None or position.at == "TRIM_HORIZON":
        return -1
    return float("inf") if position.sequence is None else int(position.sequence)


@dataclass(frozen=True, slots=True)
class InterruptedMigration:
    """A migration of NiFi's own that did not come to its end.

    Attributes:
        main: what the main table is: `gone`, `kcl` (the old one) or `nifi` (made again).
        half: the name of the half-made table; held: how many shards have a position there.
        complete: whether its marker says that everything had been copied into it.
        only_there: shards whose position, or the higher one, is in the half-made table alone.
        not_there: shards whose position is in the main table alone, or higher there.
    """

    main: str
    half: str
    held: int
    complete: bool
    only_there: tuple[str, ...]
    not_there: tuple[str, ...]


def interrupted(snapshot: Snapshot, stream: StreamIdentity) -> InterruptedMigration | None:
    """The migration that the tables are in the middle of; None: there is no half-made table."""
    half = snapshot.table + HALF_MADE
    if half not in snapshot.tables:
        return None
    main, copies = _main(snapshot, stream).shards, _read(snapshot, half, stream).shards
    return InterruptedMigration(
        main=_kind(snapshot),
        half=half,
        held=len(copies),
        complete=any(item.get("migrationStatus") == {"S": "COMPLETE"} for item in snapshot.tables[half]),
        only_there=_further(copies, main),
        not_there=_further(main, copies),
    )


def _kind(snapshot: Snapshot) -> str:
    keys = snapshot.keys.get(snapshot.table)
    return "gone" if keys is None else "kcl" if keys == kcl.KEY else "nifi"


def _further(rows: Iterable[SourceShard], others: Iterable[SourceShard]) -> tuple[str, ...]:
    """Shards that have a sequence number in `rows`, and none or a lower one in `others`."""
    known = {row.id: _number(row) for row in others}
    return tuple(row.id for row in rows if row.stored.position and row.stored.position.sequence and known.get(row.id, -1) < _number(row))


def _notes(snapshot: Snapshot) -> Iterable[str]:
    half = snapshot.table + HALF_MADE
    if half not in snapshot.tables:
        return
    main = {"gone": "is not there", "kcl": "is still KCL's", "nifi": "is NiFi's"}[_kind(snapshot)]
    yield (
        f"NiFi's own migration was interrupted: {half} is there, and the main table {main}. Do not start NiFi on it again; its next start may "
        "delete the only copy (NIFI-16003)"
    )


def _row(place: RowContent, had: RawItem) -> RawItem:
    row = {name: tagged for name, tagged in had.items() if name not in TAKEN_OUT}
    row |= {"streamName": {"S": place.stream}, "shardId": {"S": place.shard.id}}
    sequence = place.position.sequence if place.position else None
    return row | ({"sequenceNumber": {"S": sequence}} if sequence else {})


def _stamp(place: RowContent, _had: RawItem) -> RawItem:
    return {"lastUpdateTimestamp": {"N": str(place.millis)}}


NIFI = FormatWriter(
    Nifi(),
    KEY,
    SHARD_TYPES,
    _row,
    _stamp,
    supports_shard_end=False,
    unstarted="set the processor's Initial Stream Position to TRIM_HORIZON",
    conflicting_suffixes=((HALF_MADE, "NiFi's own migration was interrupted, and its next start copies that table over this one"),),
)
