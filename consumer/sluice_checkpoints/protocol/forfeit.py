"""Gives up what retention took of an open batch: its range shrinks (docs/protocol.md, "Retention").

It never happens automatically: a person has named the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluice_checkpoints.protocol.open_range import rewrite
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch


@dataclass(frozen=True, slots=True)
class RangeLeft:
    """What the stream still holds of a bound range: its first record and size, as in `ShardRow`; `note` says what is lost, for people."""

    first: str | None
    records: int
    size: int
    note: str


def forfeit(store: CheckpointStore, epoch: Epoch, row: ShardRow, left: RangeLeft) -> ShardRow:
    """Shrinks the range that an open batch has of a shard. Its ends stay, so the chain of ranges has no gap.

    Condition: this epoch's row, with exactly the range that `row` has. To be done before this epoch issues the batch.

    Raises:
        Fenced: a later epoch took over. ProtocolViolation: the row has another range.
    """
    wanted = replace(row, first=left.first, records=left.records, size=left.size, note=left.note)
    return rewrite(store, epoch, (row, wanted), {("note",): left.note})
