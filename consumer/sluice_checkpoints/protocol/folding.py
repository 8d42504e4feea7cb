"""Folds rows of shards that are over: their ids go into rows `ended/<id>`, and later their own rows go (docs/protocol.md, "Folded shards").

First the ids are written, later the rows are deleted. So whoever does not find a row any more finds the id, in whatever order it reads.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice_checkpoints.errors import Fenced, ServiceUnavailable
from sluice_checkpoints.position import END
from sluice_checkpoints.protocol.batch_writes import BatchSteps, Epoch
from sluice_checkpoints.protocol.rows import CONSUMER, ENDED_PREFIX, SHARD_PREFIX, Item, ShardRow
from sluice_checkpoints.protocol.table import NEW_ROW, Check, Condition, Delete, Put, equals


@dataclass(frozen=True, slots=True)
class EndedShards:
    """A row `ended/<id>`: shards that were read to their end, and that the stream no longer has; it is never changed.

    Attributes:
        shards: their ids; the first of them is in the row's key.
        notes: what their rows said of possible losses, by shard.
        at: the service's time of the listing that lacked them, epoch milliseconds. Nothing was read of them later.
    """

    shards: frozenset[str]
    at: int
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The row's key."""
        return ENDED_PREFIX + min(self.shards)

    def to_item(self) -> Item:
        """The stored form."""
        return {"id": self.key, "shards": self.shards, "at": self.at} | ({"notes": dict(self.notes)} if self.notes else {})

    @staticmethod
    def from_item(item: Mapping[str, Any]) -> EndedShards:
        """Reads the stored form.

        Raises:
            KeyError: it lacks an attribute. TypeError: an attribute, an id or a note is of another type.
        """
        shards, notes, at = item["shards"], item.get("notes", {}), item["at"]
        for name, value, type_ in (("shards", shards, frozenset), ("notes", notes, dict), ("at", at, int)):
            if type(value) is not type_:
                raise TypeError(f"attribute {name} is {value!r}")
        if strange := [value for value in (*shards, *notes.values()) if type(value) is not str]:
            raise TypeError(f"{strange[0]!r} is neither the id of a shard nor a note")
        return EndedShards(shards, at, dict(notes))

    @staticmethod
    def of(rows: Iterable[ShardRow], at: int) -> EndedShards:
        """What is kept of these rows, which a listing of this time lacked."""
        kept = {row.id: row.note for row in rows}
        return EndedShards(frozenset(kept), at, {shard: note for shard, note in kept.items() if note})


@dataclass(frozen=True, slots=True)
class TableShards:
    """What a table says of shards.

    Attributes:
        rows: rows by shard id.
        folded: shards that are over, by id, some of which may still have their row, and when that was written (`EndedShards.at`).
        notes: what their rows said of possible losses.
    """

    rows: Mapping[str, ShardRow]
    folded: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(items: Iterable[Item]) -> TableShards:
        """Out of all rows of a table, but for those that were put too late."""
        rows: dict[str, ShardRow] = {}
        folded: dict[str, int] = {}
        notes: dict[str, str] = {}
        for item in items:
            if item["id"].startswith(SHARD_PREFIX):
                row = ShardRow.from_item(item)
                rows[row.id] = row
            elif item["id"].startswith(ENDED_PREFIX):
                ended = EndedShards.from_item(item)
                folded |= dict.fromkeys(ended.shards, ended.at)
                notes |= ended.notes
        return TableShards({shard: row for shard, row in rows.items() if not is_late(row, folded)}, folded, notes)

    @property
    def all(self) -> dict[str, ShardRow]:
        """A row for each shard, of a folded one no more than that it is over."""
        return {shard: ShardRow(shard, END, END) for shard in self.folded} | dict(self.rows)


def is_late(row: ShardRow, folded: Container[str]) -> bool:
    """Whether a row says nothing, for its shard was over when it was put: by a program that was paused in its first start, say."""
    return row.id in folded and row.end != END


def fold(store: BatchSteps, epoch: Epoch, rows: Sequence[ShardRow], at: int) -> EndedShards:
    """Writes down that the shards of these rows are over. Sent twice it says the same, so a lost reply does no harm.

    Condition: the lease is this epoch's, and there is no row of this key yet.

    Args:
        store: of the table.
        epoch: the one that folds.
        rows: at END in committed batches.
        at: the service's time of the last listing, epoch milliseconds.

    Returns:
        The row as it is written; where there was one already, that.

    Raises:
        Fenced: a later epoch took over.
    """
    ended = EndedShards.of(rows, at)
    result = store.table.transact([_mine(epoch), Put(ended.to_item(), (NEW_ROW,))])
    if result.applied:
        return ended
    if 0 in result.refused:
        raise _fenced(epoch)
    stored = result.refused[1] or store.table.get(ended.key)
    if stored is None:
        raise ServiceUnavailable(f"table {store.table.name} says that there is a row {ended.key}, and then that there is none")
    return EndedShards.from_item(stored)


def delete(store: BatchSteps, epoch: Epoch, rows: Sequence[ShardRow]) -> Mapping[str, Item | None]:
    """Deletes rows of shards that were folded before: all of them, or none.

    Condition: the lease is this epoch's, and every row is at END and as it was read.

    Returns:
        Nothing: they are gone. Else by shard those that are not as they were read: the row that is there, or None if there is none any more.

    Raises:
        Fenced: a later epoch took over.
    """
    result = store.table.transact([_mine(epoch), *(Delete(row.key, _as_read(row)) for row in rows)])
    if 0 in result.refused:
        raise _fenced(epoch)
    return {rows[i - 1].id: stored for i, stored in result.refused.items()}


def _mine(epoch: Epoch) -> Check:
    return Check(CONSUMER, equals(generation=epoch.generation, token=epoch.token))


def _as_read(row: ShardRow) -> tuple[Condition, ...]:
    return equals(end=END.to_map(), batch=row.batch, generation=row.generation)


def _fenced(epoch: Epoch) -> Fenced:
    return Fenced(f"generation {epoch.generation} does not hold the lease any more: it folds no shards")
