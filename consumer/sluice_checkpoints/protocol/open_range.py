"""Makes the range smaller that an open batch has of a shard: the conditions, and what a refusal means (docs/protocol.md, "Retention", "Poison").

`shorten` and `exclude` come before the batch is issued again. What `shorten` lets go comes in the next batch. What `exclude` takes out is in the dead
letters. `forfeit` gives up what retention took. It never happens automatically: a person has named the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Fenced, ProtocolViolation
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import Position
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
    stored = ShardRow.from_item(outcome.row or {**row.to_item(), "batch": 0})
    if stored.generation > epoch.generation:
        raise Fenced(f"generation {stored.generation} took over {row.id} from {epoch.generation}")
    if stored == wanted:
        return wanted
    raise ProtocolViolation(f"{row.id} has another range than the one that was looked at: batch {stored.batch}, {counted(stored.records, 'record')}")


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
    wanted = replace(row, end=kept.end, first=kept.first, records=kept.records, size=kept.size, read_to=kept.read_to, children=None, iterator=None)
    put: dict[Path, object] = {("end",): kept.end.to_map(), ("readTo",): kept.read_to}
    return rewrite(store, epoch, (row, wanted), put, remove=frozenset({("children",), ("onward",)}))


def exclude(store: CheckpointStore, epoch: Epoch, row: ShardRow, letter: str | None = None) -> ShardRow:
    """Takes the only record out of a range; its ends stay. To be done once the record's dead letter is stored.

    `letter`: where it is pending; the commit of the batch makes it final. None: it was sent for good.

    Condition: this epoch's row, with exactly the range that `row` has, which is of one record.

    Raises:
        Fenced: a later epoch took over. ProtocolViolation: the row has another range, or one of several records.
    """
    if row.records != 1:
        raise ProtocolViolation(f"{row.id} has {counted(row.records, 'record')} in batch {row.batch}: only a record that is alone is excluded")
    wanted = replace(row, first=None, records=0, size=0, excluded=1, letter=letter)
    put: dict[Path, object] = {("excluded",): 1} | ({("letter",): letter} if letter else {})
    return rewrite(store, epoch, (row, wanted), put)
