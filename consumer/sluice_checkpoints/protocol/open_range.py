"""Rewrites the range that an open batch has of a shard: the condition, and what a refusal means (docs/protocol.md, "Retention", "Poison")."""

from __future__ import annotations

from collections.abc import Mapping

from sluice_checkpoints.errors import Fenced, ProtocolViolation
from sluice_checkpoints.plurals import counted
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Path, Update, equals

Change = tuple[ShardRow, ShardRow]
NOTHING: frozenset[Path] = frozenset()


def rewrite(store: CheckpointStore, epoch: Epoch, change: Change, put: Mapping[Path, object], remove: frozenset[Path] = NOTHING) -> ShardRow:
    """Writes a range that holds less. Its effect is recognised where only the reply was lost.

    Condition: this epoch's row, with exactly the range that was looked at.

    Args:
        store: the checkpoint table.
        epoch: the writer.
        change: the row as it was looked at, and as it is to be.
        put: what is written beside `first`, `records` and `bytes`.
        remove: what is taken out.

    Returns:
        The row as it is now.

    Raises:
        Fenced: a later epoch took over. ProtocolViolation: the row has another range.
    """
    row, wanted = change
    first: dict[Path, object] = {} if wanted.first is None else {("first",): wanted.first}
    outcome = store.table.write(
        Update(
            row.key,
            when=equals(generation=epoch.generation, batch=row.batch, first=row.first, records=row.records, end=row.end.to_map()),
            put={**first, ("records",): wanted.records, ("bytes",): wanted.size, **put},
            remove=remove if first else remove | {("first",)},
        )
    )
    if outcome.applied:
        return wanted
    found = ShardRow.from_item(outcome.found or {**row.to_item(), "batch": 0})
    if found.generation > epoch.generation:
        raise Fenced(f"generation {found.generation} took over {row.id} from {epoch.generation}")
    if found == wanted:
        return wanted
    raise ProtocolViolation(f"{row.id} has another range than the one that was looked at: batch {found.batch}, {counted(found.records, 'record')}")
