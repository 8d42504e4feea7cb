"""The kinds of rows that a checkpoint table of Sluice may have, with every attribute of each (docs/protocol.md, "Rows"). Pure.

The one list of them: whoever reads a table asks here what a row is. What is missing here is refused by name when a table is read as a source.

A row that is read by name is checked before anything acts on it: any table may have a key named `id`, and anybody may change a row by hand.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sluice_checkpoints.errors import ProtocolViolation, Refused
from sluice_checkpoints.position import SEQUENCE_NUMBER
from sluice_checkpoints.protocol.folding import EndedShards
from sluice_checkpoints.protocol.poison_note import IsolationNote
from sluice_checkpoints.protocol.reset_writes import Move
from sluice_checkpoints.protocol.rows import (
    BOOTSTRAP_PREFIX,
    CONSUMER,
    ENDED_PREFIX,
    ISOLATION,
    LETTERS,
    MIGRATION,
    RESET_PREFIX,
    SHARD_PREFIX,
    VERSION_PREFIX,
    VERSIONS,
    ConsumerRow,
    Item,
    MigrationRow,
    ShardRow,
)
from sluice_checkpoints.protocol.table import Member, Outcome, Table, Transaction, Write
from sluice_checkpoints.protocol.versions import listed

Types = Mapping[str, type]
POSITION_TYPES: Types = {"at": str, "millis": int, "sequence": str, "sub": int}
T = TypeVar("T")
UNREADABLE = (AttributeError, KeyError, ProtocolViolation, TypeError, ValueError)


@dataclass(frozen=True)
class RowKind:
    """One kind of row.

    Attributes:
        key: the row's key; where it ends in `/`, what the keys of such rows begin with.
        types: every attribute that it may have, but for its key.
        read: reads the row; it raises AttributeError, KeyError, ProtocolViolation, Refused or TypeError where that is not possible.
        comes_first: it may exist in a table that no consumer and no migration has claimed yet.
    """

    key: str
    types: Types
    read: Callable[[Item], object]
    comes_first: bool = False

    @property
    def name(self) -> str:
        """The kind's name, for people."""
        return self.key.rstrip("/")

    def has(self, key: str) -> bool:
        """Whether a row of this key is of this kind."""
        return key.startswith(self.key) if self.key.endswith("/") else key == self.key

    def unknown(self, item: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of attributes that no row of this kind has."""
        return tuple(sorted(item.keys() - self.types.keys() - {"id"}))


def _types(text: str = "", number: str = "", flag: str = "", **more: type) -> Types:
    """Attributes by their types; names are separated by spaces."""
    named = dict.fromkeys(text.split(), str) | dict.fromkeys(number.split(), int)
    return named | dict.fromkeys(flag.split(), bool) | more


def _claim(item: Item) -> object:
    return MigrationRow.from_item(item), item["streamArn"], item["streamCreated"]


def _shard(item: Item) -> object:
    for place in ("start", "end"):
        _position(item[place])
    for child in item.get("children", ()):
        if type(child["id"]) is not str:
            raise TypeError(f"attribute children names {child['id']!r}")
        if type(child["parents"]) is not frozenset:
            raise TypeError(f"attribute children says that the parents of {child['id']} are {child['parents']!r}")
    return ShardRow.from_item(item)


def _kept(item: Item) -> object:
    for entry in item["shards"]:
        _position({name: value for name, value in entry.items() if name not in {"id", "readTo"}})
        if type(entry["id"]) is not str or type(entry.get("readTo", 0)) is not int:
            raise TypeError(f"attribute shards has {entry!r}")
    return item["generation"]


def _reset(item: Item) -> object:
    return [Move.from_map(entry) for entry in item["shards"]]


def _position(stored: Mapping[str, Any]) -> None:
    for name, value in stored.items():
        if type(value) is not POSITION_TYPES[name] or (name == "sequence" and not SEQUENCE_NUMBER.fullmatch(str(value))):
            raise TypeError(f"{name} of a position is {value!r}")


KINDS = (
    RowKind(
        CONSUMER,
        _types(
            text="consumerId streamArn token state plan holder updatedAt exportedTo tableId owner cluster reset lastReset",
            number="format streamCreated generation counter leaseMillis committed chunks filled resetAfter",
            flag="bootstrapped released",
            letters=list,
            retention=int,
            lastCommit=dict,
            lastBeat=dict,
        ),
        ConsumerRow.from_item,
        comes_first=True,
    ),
    RowKind(
        MIGRATION,
        _types(
            text="source format state token planDigest streamArn",
            number="now generation counter leaseMillis rows streamCreated",
            flag="released",
            risks=dict,
            choices=dict,
        ),
        _claim,
        comes_first=True,
    ),
    RowKind(ISOLATION, _types(text="failed trace", number="batch hour excluded ever", search=dict), IsolationNote.from_item),
    RowKind(LETTERS, _types(text="folder", number="batch", pending=dict), lambda item: item),
    RowKind(VERSIONS, _types(list=list), listed),
    RowKind(VERSION_PREFIX, _types(number="generation", shards=list), _kept),
    RowKind(BOOTSTRAP_PREFIX, _types(text="position", number="t0", shards=list), lambda item: item, comes_first=True),
    RowKind(RESET_PREFIX, _types(text="asked", number="committed chunks", shards=list, result=dict), _reset),
    RowKind(ENDED_PREFIX, _types(number="at", shards=frozenset, notes=dict), EndedShards.from_item),
    RowKind(
        SHARD_PREFIX,
        _types(
            text="first note letter",
            number="generation joins batch records readTo bytes behind replays excluded",
            start=dict,
            end=dict,
            readers=dict,
            readBy=str,
            calls=dict,
            onward=dict,
            parents=frozenset,
            children=list,
        ),
        _shard,
    ),
)


def kind_of(key: str) -> RowKind | None:
    """The kind of a row by its key; None: Sluice writes no such row."""
    return next((kind for kind in KINDS if kind.has(key)), None)


class OwnTable:
    """A `Table` whose reads raise `Refused` at rows that Sluice does not write, but for rows that are only compared (`batch_get`)."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def name(self) -> str:
        return self._table.name

    def get(self, key: str) -> Item | None:
        item = self._understood(key, lambda: self._table.get(key))
        return item and self._checked(item)

    def batch_get(self, keys: Sequence[str]) -> dict[str, Item]:
        return self._table.batch_get(keys)

    def scan(self) -> Iterator[Item]:
        return map(self._checked, self.anything())

    def anything(self) -> Iterator[Item]:
        """Every row as it is stored.

        Raises:
            Refused: a row holds what cannot be read here.
        """
        rows = self._table.scan()
        while (item := self._understood(None, lambda: next(rows, None))) is not None:
            yield item

    def write(self, write: Write) -> Outcome:
        return self._table.write(write)

    def transact(self, members: Sequence[Member]) -> Transaction:
        return self._table.transact(members)

    def side_by_side(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        return self._table.side_by_side(calls)

    def _checked(self, item: Item) -> Item:
        self._understood(str(item["id"]), lambda: check(item))
        return item

    def _understood(self, key: str | None, read: Callable[[], Item | None]) -> Item | None:
        """The result of a read of this row, or of the next one of a scan."""
        changed = f"table {self.name} belongs to another program, or was changed by hand"
        try:
            return understood(f"{changed}: row {key}" if key else changed, read)
        except Refused as error:
            named = key or getattr(error.__cause__, "key", None)
            raise Refused(f"{error}. {self._way_on(named)}" if named else str(error)) from error.__cause__

    def _way_on(self, key: str) -> str:
        shown = shlex.quote(json.dumps({"id": {"S": key}}))
        return f"To see the row, run aws dynamodb get-item --table-name {self.name} --key {shown}. Put it back as it was, then try again"


def understood(what: str, read: Callable[[], Item | None]) -> Item | None:
    """The result of a read.

    Raises:
        Refused: something in it shows that Sluice did not write the row; the message begins with `what`.
    """
    try:
        return read()
    except KeyError as missing:
        raise Refused(f"{what} has no attribute {missing}") from missing
    except UNREADABLE as error:
        raise Refused(f"{what}: {error}") from error


def check(item: Item) -> Item:
    """The row, if it has the attributes and types of its kind; rows of no known kind pass.

    Raises:
        AttributeError, KeyError, ProtocolViolation, Refused, TypeError: it has not; see `understood`.
    """
    if kind := kind_of(str(item["id"])):
        for name, type_ in kind.types.items():
            if name in item and type(item[name]) is not type_:
                raise TypeError(f"attribute {name} is {item[name]!r}")
        kind.read(item)
    return item
