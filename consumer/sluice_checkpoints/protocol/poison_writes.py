"""Makes an open batch smaller: the writes that isolate a record which `process` cannot deal with (docs/protocol.md, "Poison").

Both come before the batch is issued again. What `shorten` lets go comes in the next batch. What `exclude` takes out is in the dead letters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluice_checkpoints.errors import ProtocolViolation
from sluice_checkpoints.plurals import counted
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.open_range import rewrite
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Path


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
