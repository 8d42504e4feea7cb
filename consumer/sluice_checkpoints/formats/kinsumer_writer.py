"""Checkpoints of kinsumer, twitchscience's and snowplow's, as they are written on the way back.

A row without an owner is captured at once. `SequenceNumber` NULL means the beginning of the shard, unless the fork's iteratorStartTimestamp is set
(`getShardIterator`); the word `LATEST` is never written. `Finished` holds a time when a shard is finished; only kinsumer's leader asks for it
(`diffShardIDs`). A worker that captures a shard reads `SequenceNumber` alone (`consume`, `capture`), so a finished shard needs the number of its end
as well. Only the table of checkpoints is written: clients and the list of shards are kinsumer's own to renew.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sluice_checkpoints.formats.kinsumer import CHECKPOINTS, KEY, LATEST, TYPES, Kinsumer
from sluice_checkpoints.formats.snapshot import RawItem, Tagged
from sluice_checkpoints.formats.writer import FormatWriter, RowContent

TAKEN_OUT = frozenset({"OwnerID", "OwnerName"})
NOTHING: Tagged = {"NULL": True}
NANOS_PER_MILLI = 1_000_000


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
    """RFC1123Z of Go."""
    return {"S": datetime.fromtimestamp(place.millis / 1000, UTC).strftime("%a, %d %b %Y %H:%M:%S %z")}


UNSTARTED = "let kinsumer begin at TRIM_HORIZON (its default; do not set WithIteratorStartTimestamp)"
KINSUMER = FormatWriter(Kinsumer(), KEY, TYPES, _row, _stamp, reads_past_ends=True, unstarted=UNSTARTED, table_suffix=CHECKPOINTS)
