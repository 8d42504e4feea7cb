"""Gives up what retention took of an open batch: the one write that changes what a bound batch contains (docs/protocol.md, "Retention").

Nothing does this by itself: a person has named the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Fenced, ProtocolViolation
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Path, Update, equals


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
    first: dict[Path, object] = {} if left.first is None else {("first",): left.first}
    outcome = store.table.write(
        Update(
            row.key,
            when=equals(generation=epoch.generation, batch=row.batch, first=row.first, records=row.records, end=row.end.to_map()),
            put={**first, ("records",): left.records, ("bytes",): left.size, ("note",): left.note},
            remove=frozenset() if first else frozenset({("first",)}),
        )
    )
    wanted = replace(row, first=left.first, records=left.records, size=left.size, note=left.note)
    if outcome.applied:
        return wanted
    found = ShardRow.from_item(outcome.found or {**row.to_item(), "batch": 0})
    if found.generation > epoch.generation:
        raise Fenced(f"generation {found.generation} took over {row.id} from {epoch.generation}")
    if found == wanted:
        return wanted  # only the reply was lost
    raise ProtocolViolation(f"{row.id} has another range than the one that was looked at: batch {found.batch}, {found.records} records")
