"""Leases of the Kinesis Client Library 1, 2 and 3, of one stream, as they are written on the way back.

KCL continues **at** the record of its checkpoint and drops user records up to (sequence, sub-sequence). Both are compared as numbers, the latter as a
Java long (`ExtendedSequenceNumber.compareTo`, `ProcessTask.filterAndGetMaxExtendedSequenceNumber`; an iterator AT_SEQUENCE_NUMBER in
`KinesisDataFetcher`). It stores the sub-sequence as N and reads it by `new Long` or `Long.valueOf` (`DynamoUtils.safeGetLong`). It checks only that
it is not negative (`ShardRecordProcessorCheckpointer.checkpoint`, on the application's own calls). So a record that is done as a whole has the
largest long there is. No user record of it comes again, however many it holds, and every later record is larger (tried with KCL 3.0's own class).
"""

from __future__ import annotations

from sluice_checkpoints.formats.attributes import count
from sluice_checkpoints.formats.kcl import KEY, TYPES, WHOLE_RECORD, Kcl
from sluice_checkpoints.formats.snapshot import RawItem
from sluice_checkpoints.formats.writer import FormatWriter, RowContent
from sluice_checkpoints.position import TRIM_HORIZON, Position

# Owners, and what an application had prepared and never confirmed.
TAKEN_OUT = frozenset({"leaseOwner", "checkpointOwner", "pendingCheckpoint", "pendingCheckpointSubSequenceNumber", "pendingCheckpointState"})
WORDS = {"TRIM_HORIZON": "TRIM_HORIZON", "END": "SHARD_END"}


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
