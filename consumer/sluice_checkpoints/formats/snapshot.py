"""Another system's tables as they are read: keys, rows, and what a scan found.

Rows come as DynamoDB stores them, with their type tags and numbers as text, for a reader refuses types it does not know and no digit may get lost.
Nothing here, and nothing behind this port, ever writes to a source.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

Tagged = Mapping[str, Any]  # one attribute: {"S": "text"}, {"N": "12"}, {"SS": [...]}, {"B": b"..."}
RawItem = Mapping[str, Tagged]


@dataclass(frozen=True, slots=True)
class TableKey:
    """One attribute of a table's key: its name, `HASH` or `RANGE`, and its type (`S`, `N` or `B`)."""

    name: str
    kind: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} {self.kind} {self.type}"


KeySchema = tuple[TableKey, ...]


class SourceTables(Protocol):
    """Read-only access to tables by name. Every method raises `ServiceUnavailable` when no answer came in time, `Refused` when access is denied."""

    def key_schema(self, table: str) -> KeySchema | None:
        """The table's key, HASH first; None: there is no such table."""
        ...

    def scan(self, table: str) -> Sequence[RawItem]:
        """Every row, strongly consistent, in no order."""
        ...


@dataclass(frozen=True)
class Snapshot:
    """All rows of a source as one scan found them.

    Attributes:
        table: the main table's name.
        keys: the key schema of each table read.
        tables: their rows: the main table's, and those of tables that a format reads beside it.
    """

    table: str
    keys: Mapping[str, KeySchema]
    tables: Mapping[str, Sequence[RawItem]]

    @property
    def rows(self) -> Sequence[RawItem]:
        """The main table's rows; none if it is not there."""
        return self.tables.get(self.table, ())

    def label(self, item: RawItem, table: str | None = None) -> str:
        """A row's key as text, for messages."""
        names = [key.name for key in self.keys[table or self.table]]
        return "/".join(_shown(item.get(name)) for name in names)

    @cached_property
    def by_label(self) -> dict[tuple[str, str], RawItem]:
        """Every row by table and key."""
        return {(table, self.label(item, table)): item for table, items in self.tables.items() for item in items}

    def without(self, attributes: AbstractSet[str], rows: AbstractSet[str] = frozenset()) -> Snapshot:
        """The same without these attributes, and without the rows of these keys."""

        def left(item: RawItem) -> RawItem:
            return {name: tagged for name, tagged in item.items() if name not in attributes}

        kept = {t: tuple(left(item) for item in items if self.label(item, t) not in rows) for t, items in self.tables.items()}
        return Snapshot(self.table, self.keys, kept)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of every table's key and every attribute of every row; in which order rows and set members came does not matter."""
        texts = sorted((*name, json.dumps(_canonical({"M": item}))) for name, item in self.by_label.items())
        return hashlib.sha256(json.dumps([sorted(self._schemas.items()), texts]).encode()).hexdigest()

    @property
    def _schemas(self) -> dict[str, str]:
        return {name: ", ".join(map(str, keys)) for name, keys in self.keys.items()}

    def moved(self, later: Snapshot) -> tuple[str, ...]:
        """What changed between two scans, one line a table or row, the latter with its attributes. Empty: nothing changed."""
        tables = sorted(name for name, _ in self._schemas.items() ^ later._schemas.items())
        if tables:
            return tuple(f"table {name} was created, deleted, or created again" for name in dict.fromkeys(tables))
        names = sorted(self.by_label.keys() | later.by_label.keys())
        changes = ((name[1], _difference(self.by_label.get(name), later.by_label.get(name))) for name in names)
        return tuple(f"{label}: {change}" for label, change in changes if change)


def _canonical(tagged: Tagged) -> Any:
    ((tag, value),) = tagged.items()
    match tag:
        case "M":
            return {"M": {name: _canonical(value[name]) for name in sorted(value)}}
        case "L":
            return {"L": [_canonical(v) for v in value]}
        case "SS" | "NS":
            return {tag: sorted(value)}
        case "B":
            return {"B": value.hex()}
        case "BS":
            return {"BS": sorted(v.hex() for v in value)}
        case _:
            return {tag: value}


def _difference(before: RawItem | None, after: RawItem | None) -> str:
    if before is None or after is None:
        return "row appeared" if before is None else "row is gone"
    names = sorted(before.keys() | after.keys())
    return ", ".join(f"{n} {_shown(before.get(n))} → {_shown(after.get(n))}" for n in names if _differs(before.get(n), after.get(n)))


def _differs(before: Tagged | None, after: Tagged | None) -> bool:
    return (before is None) is not (after is None) or (before is not None and after is not None and _canonical(before) != _canonical(after))


def _shown(tagged: Tagged | None) -> str:
    return "absent" if tagged is None else str(next(iter(tagged.values())))
