"""Writing another system's table, on the way back: what is known of a format, the change of one row, and the port. Pure.

A writer gets a shard's position and the row that was there ({}: none). It returns the whole row as its system would leave it after a clean stop:
without an owner, so that a worker may take it at once.

A row changes only from exactly what was read to what is wanted: every attribute that its format knows is part of the condition. A concurrent change
by the other system wins. Nothing is deleted. `kcl` and its like know the rows of one format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from sluice_checkpoints.errors import SourceActive
from sluice_checkpoints.formats.reader import Format, Types
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem, SourceTables, Tagged
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.table import MAX_TRANSACTION, MAX_TRANSACTION_BYTES, packed
from sluice_checkpoints.stream.model import Shard

PLACEHOLDERS = 32  # bytes of type tags, punctuation and names that stand for an attribute


def same(left: Tagged | None, right: Tagged | None) -> bool:
    """DynamoDB's equality of two attributes: types count, numbers are compared by value, sets without order. None: there is no attribute."""
    if left is None or right is None:
        return left is right
    return bool(_plain(left) == _plain(right))


def same_rows(left: RawItem, right: RawItem) -> bool:
    """Whether two rows say the same."""
    return all(same(left.get(name), right.get(name)) for name in left.keys() | right.keys())


def _plain(tagged: Tagged) -> Any:
    ((tag, value),) = tagged.items()
    match tag:
        case "N":
            return tag, Decimal(value)
        case "NS":
            return tag, sorted(map(Decimal, value))
        case "SS" | "BS":
            return tag, sorted(value)
        case "M":
            return tag, {name: _plain(inner) for name, inner in value.items()}
        case "L":
            return tag, [_plain(inner) for inner in value]
        case _:
            return tag, value


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row as it was read and as it is wanted.

    Attributes:
        keys: the table's key.
        before: the whole row; None: there is none.
        after: the whole row; it differs from `before`.
        known: names of all attributes of the format.
    """

    keys: KeySchema
    before: RawItem | None
    after: RawItem
    known: frozenset[str]

    @property
    def key(self) -> RawItem:
        """The row's key."""
        return {key.name: self.after[key.name] for key in self.keys}

    @property
    def label(self) -> str:
        """The key as text, for messages."""
        return "/".join(str(next(iter(tagged.values()))) for tagged in self.key.values())

    def holds(self, row: RawItem | None) -> bool:
        """The condition of the write: there is no row as there was none, or every known attribute is as it was read.

        The key is one of them, so a row that was deleted in between is not created again from half of what it was.
        """
        if self.before is None or row is None:
            return self.before is row
        return all(same(self.before.get(name), row.get(name)) for name in self.known)

    def done(self, row: RawItem | None) -> bool:
        """Whether the row is already as wanted: then only the reply of an earlier try was lost."""
        return row is not None and all(same(self.after.get(name), row.get(name)) for name in self.known)


class TargetTables(SourceTables, Protocol):
    """Other systems' tables, to be read and written. Every method raises `ServiceUnavailable` and `Refused` as those of `SourceTables` do."""

    def create(self, table: str, keys: KeySchema) -> tuple[str, ...]:
        """Makes a table unless it exists, and waits until it can be used; returns what could not be had (backups, deletion protection).

        Raises:
            Refused: there is one of another key.
        """
        ...

    def write(self, table: str, changes: Sequence[RowChange]) -> Mapping[int, RawItem | None]:
        """At most `MAX_TRANSACTION` changes, all or nothing.

        Returns:
            Empty: all were made. Otherwise nothing was, and these are the changes whose conditions failed, with the rows as they are.
        """
        ...


def write_rows(tables: TargetTables, table: str, changes: Sequence[RowChange]) -> None:
    """One transaction. Changes that are there already, because only a reply was lost, count as made.

    Raises:
        SourceActive: a row is neither as it was read nor as it is wanted: its system works. The transaction changed nothing.
    """
    pending = list(changes)
    while pending and (refused := tables.write(table, pending)):
        if moved := [pending[i].label for i, row in refused.items() if not pending[i].done(row)]:
            raise SourceActive(f"table {table} is in use, stop its consumer and run this again: {', '.join(moved[:10])} moved after it was read")
        pending = [change for i, change in enumerate(pending) if i not in refused]


def in_transactions(changes: Sequence[RowChange]) -> list[list[RowChange]]:
    """Changes in lists that fit into one transaction each, by number and by bytes: rows of KCL carry an application's state."""
    return list(packed(changes, MAX_TRANSACTION, _bytes_of, MAX_TRANSACTION_BYTES))


def _bytes_of(change: RowChange) -> int:
    """Upper bound: the row with everything that it has before or after, and the condition, which repeats what was read."""
    before = change.before or {}
    condition = {name: tagged for name, tagged in before.items() if name in change.known}
    return _size({**before, **change.after}) + _size(condition)


def _size(item: RawItem) -> int:
    return sum(len(name.encode()) + PLACEHOLDERS + _value_size(tagged) for name, tagged in item.items())


def _value_size(tagged: Tagged) -> int:
    """Bytes of a value in a request, where binary is base64."""
    ((tag, value),) = tagged.items()
    match tag:
        case "S" | "N":
            return len(value.encode())
        case "B":
            return len(value) * 4 // 3 + 4
        case "M":
            return _size(value)
        case "SS" | "NS" | "BS":
            return sum(_value_size({tag[0]: inner}) + PLACEHOLDERS for inner in value)
        case "L":
            return sum(_value_size(inner) + PLACEHOLDERS for inner in value)
        case _:
            return 4


@dataclass(frozen=True, slots=True)
class RowContent:
    """What a row is to say.

    Attributes:
        shard: as ListShards returns it.
        children: ids of the shards that follow it; known to the stream, whether it has ended or not.
        position: None: it was not started, and the format has no word for that.
        stream: the stream's name.
        millis: the time of the export, epoch milliseconds, for attributes that say when a row was written.
        last: the sequence number to store beside the end of a shard; None: none is known, or wanted.
    """

    shard: Shard
    children: tuple[str, ...]
    position: Position | None
    stream: str
    millis: int
    last: str | None = None


@dataclass(frozen=True)
class FormatWriter:
    """What is to be known of a format to write it.

    Attributes:
        reader: reads what this writes.
        keys: the key of a table that is made.
        types: every attribute that a shard's row may have.
        row: the whole row, but for what `stamp` says; a row that is equal is not written again.
        stamp: attributes that change with every write.
        supports_subsequence: it stores positions inside an aggregate.
        supports_shard_end: it has a value for a shard that is finished.
        reads_past_ends: some of its workers go by the number of a finished shard, and not by that word.
        unstarted: the setting its consumers need so that a shard that was not started begins at its beginning; None: the format has a word for it.
        conflicting_suffixes: endings of names of tables that must not exist, with the reason.
        table_suffix: what the name of a table that is made must end with.
    """

    reader: Format
    keys: KeySchema
    types: Types
    row: Callable[[RowContent, RawItem], RawItem]
    stamp: Callable[[RowContent, RawItem], RawItem]
    supports_subsequence: bool = False
    supports_shard_end: bool = True
    reads_past_ends: bool = False
    unstarted: str | None = None
    conflicting_suffixes: tuple[tuple[str, str], ...] = ()
    table_suffix: str = ""

    @property
    def name(self) -> str:
        """The format's name."""
        return self.reader.name

    def change(self, place: RowContent, before: RawItem | None, *, anew: bool = False) -> RowChange | None:
        """What has to be written so that the row says `place`; None: it does. `anew`: nothing of what it says counts."""
        had = {} if anew else before or {}
        wanted = self.row(place, had)
        if before is not None and same_rows(wanted, before):
            return None
        return RowChange(self.keys, before, {**wanted, **self.stamp(place, had)}, frozenset(self.types))
