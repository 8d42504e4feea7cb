"""Rows of vmware-go-kcl 1 and 2, as they are written on the way back.

A row without AssignedTo and LeaseTimeout is taken at once (`DynamoCheckpoint.GetLease`), It writes a row without Checkpoint itself for a shard that
it has only just taken. Then its InitialPosition counts, which is LATEST by default.
"""

from __future__ import annotations

from sluice_checkpoints.formats.snapshot import RawItem
from sluice_checkpoints.formats.vmware_go_kcl import KEY, SHARD_END, TYPES, VmwareGoKcl
from sluice_checkpoints.formats.writer import FormatWriter, RowContent

TAKEN_OUT = frozenset({"AssignedTo", "LeaseTimeout", "ClaimRequest", "Checkpoint"})


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
