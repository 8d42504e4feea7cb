"""Checkpoint tables of vmware-go-kcl 1 and 2.

Key `ShardID` (HASH, S). `Checkpoint` is a sequence number or `SHARD_END`, and absent until the first one. No sub-sequence is stored: a checkpoint
means the whole Kinesis record, even where the application had stopped inside an aggregate. Only one parent is stored.

On the way back: a row without AssignedTo and LeaseTimeout is taken at once (`DynamoCheckpoint.GetLease`). It writes a row without Checkpoint itself
for a shard that it has only just taken. Then its InitialPosition counts, which is LATEST by default.
"""

from __future__ import annotations

import re

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.reader import (
    SHARD_ID,
    FormatReader,
    Reading,
    SourceShard,
    StoredPosition,
    check_types,
    read_rows,
    shard_id,
    text_or_none,
)
from sluice_checkpoints.formats.snapshot import RawItem, Snapshot, TableKey
from sluice_checkpoints.formats.writer import FormatWriter, RowContent
from sluice_checkpoints.position import END, SEQUENCE_NUMBER, Position
from sluice_checkpoints.stream.model import StreamIdentity

KEY = (TableKey("ShardID", "HASH", "S"),)
SHARD_END = "SHARD_END"
TYPES = {"ShardID": "S", "AssignedTo": "S", "LeaseTimeout": "S", "Checkpoint": "S", "ParentShardId": "S", "ClaimRequest": "S"}
# Version 1 writes whole seconds, version 2 fractions (time.RFC3339 and RFC3339Nano of Go).
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
TAKEN_OUT = frozenset({"AssignedTo", "LeaseTimeout", "ClaimRequest", "Checkpoint"})


class VmwareGoKcl(FormatReader):
    """The reader. A lease is refreshed every 5 s (LeaseRefreshPeriod), so half a minute without change is rest."""

    name = "vmware-go-kcl"
    keys = "ShardID HASH S"
    key = KEY
    attributes = frozenset(TYPES)

    def quiet_seconds(self, snapshot: Snapshot) -> float:
        """Six times LeaseRefreshPeriod."""
        del snapshot
        return 30.0

    def read(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        del stream
        rows = read_rows(snapshot, snapshot.table, _shard)
        return Reading(self.name, rows.shards, rows.skipped, problems=rows.problems)


def _shard(item: RawItem) -> SourceShard:
    check_types(item, TYPES)
    timeout = text_or_none(item, "LeaseTimeout")
    if timeout is not None and not TIME.fullmatch(timeout):
        raise Refused(f"LeaseTimeout {timeout!r} is not a time in RFC 3339")
    return SourceShard(shard_id(item, "ShardID"), _stored(text_or_none(item, "Checkpoint")), _parents(item), notes=_claim(item))


def _stored(checkpoint: str | None) -> StoredPosition:
    if not checkpoint:
        return StoredPosition("no Checkpoint" if checkpoint is None else "an empty Checkpoint")
    if checkpoint == SHARD_END:
        return StoredPosition(checkpoint, END)
    if not SEQUENCE_NUMBER.fullmatch(checkpoint):
        raise Refused(f"Checkpoint {checkpoint!r} is neither a sequence number nor {SHARD_END}")
    return StoredPosition(checkpoint, Position.after(checkpoint))


def _parents(item: RawItem) -> frozenset[str]:
    parent = text_or_none(item, "ParentShardId")
    if parent is not None and not SHARD_ID.fullmatch(parent):
        raise Refused(f"ParentShardId {parent!r} is not a shard id")
    return frozenset({parent} if parent else ())


def _claim(item: RawItem) -> tuple[str, ...]:
    """With a claim another worker asks for the lease. It says nothing about the position."""
    wish = text_or_none(item, "ClaimRequest")
    return () if wish is None else (f"was claimed by {wish} when its consumer stopped; its position is the last one written",)


def _row(place: RowContent, had: RawItem) -> RawItem:
    row = {name: tagged for name, tagged in had.items() if name not in TAKEN_OUT} | {"ShardID": {"S": place.shard.id}}
    row |= {"ParentShardId": {"S": place.shard.parents[0]}} if place.shard.parents else {}
    if place.position is None:
        return row
    return row | {"Checkpoint": {"S": place.position.sequence or SHARD_END}}


def _stamp(_place: RowContent, _had: RawItem) -> RawItem:
    return {}


UNSTARTED = "set InitialPositionInStream to TRIM_HORIZON (its default is LATEST, which leaves records out)"
VMWARE_GO_KCL = FormatWriter(VmwareGoKcl(), KEY, TYPES, _row, _stamp, unstarted=UNSTARTED)
