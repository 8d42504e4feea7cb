"""Tables of kinsumer, twitchscience's and snowplow's: `<application>_checkpoints`, `_clients` and `_metadata`.

Key `Shard` (HASH, S). `SequenceNumber` is NULL, empty or the word `LATEST` until the first commit; a shard read to its end has the time in
`Finished`. A commit means the whole Kinesis record. An idle client writes nowhere but into `_clients`, once a minute.

On the way back: a row without an owner is captured at once. `SequenceNumber` NULL means the beginning of the shard, unless the fork's
iteratorStartTimestamp is set (`getShardIterator`); the word `LATEST` is never written. `Finished` holds a time when a shard is finished; only
kinsumer's leader asks for it (`diffShardIDs`). A worker that captures a shard reads `SequenceNumber` alone (`consume`, `capture`), so a finished
shard needs the number of its end as well. Only the table of checkpoints is written: clients and the list of shards are kinsumer's own to renew.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.reader import (
    FormatReader,
    Reading,
    SourceShard,
    StoredPosition,
    check_types,
    count,
    read_rows,
    shard_id,
    text_or_none,
)
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem, Snapshot, TableKey, Tagged
from sluice_checkpoints.formats.writer import FormatWriter, RowContent
from sluice_checkpoints.position import END, SEQUENCE_NUMBER, Position
from sluice_checkpoints.stream.model import StreamIdentity

KEY = (TableKey("Shard", "HASH", "S"),)
CHECKPOINTS = "_checkpoints"
SIDE_TABLES = ("_clients", "_metadata")
LATEST = "LATEST"
TYPES = {
    "Shard": "S",
    "SequenceNumber": "S NULL",
    "LastUpdate": "N",
    "LastUpdateRFC": "S",
    "OwnerName": "S NULL",
    "OwnerID": "S NULL",
    "Finished": "N NULL",
    "FinishedRFC": "S NULL",
}
TAKEN_OUT = frozenset({"OwnerID", "OwnerName"})
NOTHING: Tagged = {"NULL": True}
NANOS_PER_MILLI = 1_000_000


class Kinsumer(FormatReader):
    """The reader. A client that lives writes its own row every shardCheckFrequency (60 s), and counts as gone after five times that."""

    name = "kinsumer"
    keys = "Shard HASH S"
    key = KEY
    attributes = frozenset(TYPES)

    def companions(self, table: str, keys: KeySchema | None) -> tuple[str, ...]:
        """Clients and metadata, where the table has its usual name."""
        if keys != KEY or not table.endswith(CHECKPOINTS):
            return ()
        return tuple(table.removesuffix(CHECKPOINTS) + suffix for suffix in SIDE_TABLES)

    def quiet_seconds(self, snapshot: Snapshot) -> float:
        """Five times shardCheckFrequency, and a margin."""
        del snapshot
        return 310.0

    def read(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        del stream
        rows = read_rows(snapshot, snapshot.table, _shard)
        return Reading(self.name, rows.shards, rows.skipped, notes=_notes(snapshot), problems=rows.problems)


def _notes(snapshot: Snapshot) -> tuple[str, ...]:
    if any(name != snapshot.table for name in snapshot.tables):
        return ()
    return ("its _clients table was not found, and an idle kinsumer writes nowhere else: make sure yourself that it is stopped",)


def _shard(item: RawItem) -> SourceShard:
    check_types(item, TYPES)
    return SourceShard(shard_id(item, "Shard"), _stored(item))


def _stored(item: RawItem) -> StoredPosition:
    """A shard is finished when its last record was committed."""
    sequence = text_or_none(item, "SequenceNumber")
    if "N" in item.get("Finished", {}):
        return StoredPosition(f"finished ({count(item, 'Finished')})", END)
    if sequence in {None, "", LATEST}:
        return StoredPosition(sequence or "no SequenceNumber")
    if not SEQUENCE_NUMBER.fullmatch(str(sequence)):
        raise Refused(f"SequenceNumber {sequence!r} is neither a sequence number nor {LATEST}")
    return StoredPosition(str(sequence), Position.after(str(sequence)))


def _row(place: RowContent, had: RawItem) -> RawItem:
    row = {name: tagged for name, tagged in had.items() if name not in TAKEN_OUT}
    return {**row, "Shard": {"S": place.shard.id}, "SequenceNumber": _number(place, had), **_finished(place, had)}


def _number(place: RowContent, had: RawItem) -> Tagged:
    if place.position and place.position.sequence:
        return {"S": place.position.sequence}
    stored = had.get("SequenceNumber", NOTHING)
    if place.last and not ("N" in had.get("Finished", {}) and stored.get("S")):
        return {"S": place.last}
    return NOTHING if place.position is None or stored.get("S") in {"", LATEST} else stored


def _finished(place: RowContent, had: RawItem) -> RawItem:
    if place.position is None or place.position.at != "END":
        return {"Finished": NOTHING, "FinishedRFC": NOTHING}
    if "N" in had.get("Finished", {}):
        return {}
    return {"Finished": _nanos(place), "FinishedRFC": _rfc1123(place)}


def _stamp(place: RowContent, _had: RawItem) -> RawItem:
    return {"LastUpdate": _nanos(place), "LastUpdateRFC": _rfc1123(place)}


def _nanos(place: RowContent) -> Tagged:
    return {"N": str(place.millis * NANOS_PER_MILLI)}


def _rfc1123(place: RowContent) -> Tagged:
    return {"S": datetime.fromtimestamp(place.millis / 1000, UTC).strftime("%a, %d %b %Y %H:%M:%S %z")}


UNSTARTED = "let kinsumer begin at TRIM_HORIZON (its default; do not set WithIteratorStartTimestamp)"
KINSUMER = FormatWriter(Kinsumer(), KEY, TYPES, _row, _stamp, reads_past_ends=True, unstarted=UNSTARTED, table_suffix=CHECKPOINTS)
