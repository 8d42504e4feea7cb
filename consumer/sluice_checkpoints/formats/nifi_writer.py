"""Rows of NiFi (2.10 and later), as they are written on the way back.

NiFi continues after the whole record of `sequenceNumber` and reads nothing else for that (`KinesisShardManager.readCheckpoint`). It stores no end of
a shard and no word for one that was not started. NiFi itself writes a row without a number when it takes a lease.
"""

from __future__ import annotations

from sluice_checkpoints.formats.nifi import HALF_MADE, KEY, SHARD_TYPES, Nifi
from sluice_checkpoints.formats.snapshot import RawItem
from sluice_checkpoints.formats.writer import FormatWriter, RowContent

TAKEN_OUT = frozenset({"leaseOwner", "leaseExpiry", "subSequenceNumber", "sequenceNumber"})


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
