"""Makes an open batch smaller: the writes that isolate a record which `process` cannot deal with (docs/protocol.md, "Poison").

Both come before the batch is issued again. What `shorten` lets go comes in the next batch. What `exclude` takes out is in the dead letters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Fenced, ProtocolViolation
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Equals, Path, Update


@dataclass(frozen=True, slots=True)
class RangeKept:
    """The part of a bound range that its batch keeps: up to `end`. Fields as in `ShardRow`; without records `end` is the start of the range."""

    end: Position
    first: str | None
    records: int
    size: int
    read_to: int


def shorten(store: CheckpointStore, epoch: Epoch, row: ShardRow, kept: RangeKept) -> ShardRow:
    """Moves the end of a bound range back. The next range of the shard begins there.

    Condition: this epoch's row, with exactly the range that `row` has. To be done while no task of the batch can be working.

    Raises:
        Fenced: a later epoch took over. ProtocolViolation: the row has another range.
    """
    part = {"end": kept.end, "first": kept.first, "records": kept.records, "size": kept.size, "read_to": kept.read_to}
    wanted = replace(row, **part, children=None, iterator=None)  # type: ignore[arg-type]  # of one dictionary
    first: dict[Path, object] = {} if kept.first is None else {("first",): kept.first}
    put: dict[Path, object] = {("end",): kept.end.to_map(), ("records",): kept.records, ("bytes",): kept.size, ("readTo",): kept.read_to}
    gone: set[Path] = {("children",), ("onward",)} | (set() if first else {("first",)})
    return _changed(store, epoch, (row, wanted), Update(row.key, when=_as_looked_at(epoch, row), put=put | first, remove=frozenset(gone)))


def exclude(store: CheckpointStore, epoch: Epoch, row: ShardRow) -> ShardRow:
    """Takes the only record out of a range; its ends stay. To be done once the record's dead letter is stored.

    Condition: this epoch's row, with exactly the range that `row` has, which is of one record.

    Raises:
        Fenced: a later epoch took over. ProtocolViolation: the row has another range, or one of several records.
    """
    if row.records != 1:
        raise ProtocolViolation(f"{row.id} has {row.records} records in batch {row.batch}: only a record that is alone is excluded")
    wanted = replace(row, first=None, records=0, size=0, excluded=1)
    put: dict[Path, object] = {("records",): 0, ("bytes",): 0, ("excluded",): 1}
    return _changed(store, epoch, (row, wanted), Update(row.key, when=_as_looked_at(epoch, row), put=put, remove=frozenset({("first",)})))


def _as_looked_at(epoch: Epoch, row: ShardRow) -> tuple[Equals, ...]:
    values = {"generation": epoch.generation, "batch": row.batch, "first": row.first, "records": row.records, "end": row.end.to_map()}
    return tuple(Equals((name,), value) for name, value in values.items())


def _changed(store: CheckpointStore, epoch: Epoch, change: tuple[ShardRow, ShardRow], update: Update) -> ShardRow:
    """Writes, and recognises its own effect where only the reply was lost."""
    row, wanted = change
    outcome = store.table.write(update)
    if outcome.applied:
        return wanted
    found = ShardRow.from_item(outcome.found or {**row.to_item(), "batch": 0})
    if found.generation > epoch.generation:
        raise Fenced(f"generation {found.generation} took over {row.id} from {epoch.generation}")
    if found == wanted:
        return wanted
    raise ProtocolViolation(f"{row.id} has another range than the one that was looked at: batch {found.batch}, {found.records} records")
