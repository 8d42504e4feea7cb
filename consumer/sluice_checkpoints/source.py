"""The port to another system's checkpoint tables: what a reader of one format is given, and what it makes of it.

Rows come as DynamoDB stores them, with their type tags and numbers as text, for a reader refuses types it does not know and no digit may get lost.
Nothing here, and nothing behind this port, ever writes to a source.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Protocol

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.model import Position
from sluice_checkpoints.stream import StreamIdentity

Tagged = Mapping[str, Any]  # one attribute: {"S": "text"}, {"N": "12"}, {"SS": [...]}, {"B": b"..."}
RawItem = Mapping[str, Tagged]

LISTED = 10  # rows named in a message; the rest is counted


@dataclass(frozen=True, slots=True)
class Key:
    """One attribute of a table's key: its name, `HASH` or `RANGE`, and its type (`S`, `N` or `B`)."""

    name: str
    kind: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} {self.kind} {self.type}"


KeySchema = tuple[Key, ...]


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

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of every attribute of every row; the order in which rows and set members came does not matter."""
        texts = sorted((*name, json.dumps(_canonical({"M": item}))) for name, item in self.by_label.items())
        return hashlib.sha256(json.dumps(texts).encode()).hexdigest()

    def moved(self, later: Snapshot) -> tuple[str, ...]:
        """What changed between two scans, one line a row, each naming the attributes; empty: at rest."""
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


@dataclass(frozen=True, slots=True)
class Stored:
    """What a row says about where its shard stands.

    Attributes:
        text: as it is stored, for people.
        position: None where the row names no place: it was never started (`LATEST` before the first checkpoint), or waits for a time.
        at_timestamp: it is to start at a time that the table does not hold.
        again: why records after `position` were processed before, where that is known; they will be read again.
    """

    text: str
    position: Position | None = None
    at_timestamp: bool = False
    again: str | None = None

    @property
    def progress(self) -> bool:
        """Whether anything of the shard was ever acknowledged."""
        return self.position is not None and self.position.at in {"AFTER", "END"}


@dataclass(frozen=True, slots=True)
class SourceShard:
    """One shard's row in a source: `parents` and `children` as stored there (they may be incomplete), `notes` are warnings for people."""

    id: str
    stored: Stored
    parents: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


class OtherStream(Refused):
    """What was read is of another stream, or of an earlier one of the same name."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a source that nobody may act on: the row's key (None: it is the table as a whole), and why."""

    table: str
    row: str | None
    why: Refused


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader made of a snapshot.

    Attributes:
        format: the reader's name.
        shards: one for each row that is a shard.
        skipped: one line for each row that is known not to be one.
        finished_rows_vanish: the system deletes rows of finished shards, and only after their children have started: a closed shard without a row
            whose descendant has progress is finished.
        rowless: why this system has no row for a shard that nothing else accounts for; None: there is no such reason, and it is refused.
        notes: warnings about the table as a whole.
        problems: what is refused; `shards` is what the rest says.
    """

    format: str
    shards: tuple[SourceShard, ...]
    skipped: tuple[str, ...] = ()
    finished_rows_vanish: bool = False
    rowless: str | None = None
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class Format(Protocol):
    """The reader of one format. Pure: it is given rows and never asks for more."""

    @property
    def name(self) -> str:
        """The name on the command line."""
        ...

    @property
    def keys(self) -> str:
        """The key schema it is known by, for messages."""
        ...

    def companions(self, table: str, keys: KeySchema | None) -> tuple[str, ...]:
        """Names of tables that this format may have beside a main table of this key (None: it is not there); none if it is another format's."""
        ...

    def fits(self, table: str, schemas: Mapping[str, KeySchema]) -> bool:
        """Whether the tables that exist, the main one and companions, are of this format."""
        ...

    def quiet(self, snapshot: Snapshot) -> float:
        """Seconds within which a working consumer changes at least one row."""
        ...

    def read(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        """Every row's meaning. A row that is unknown, or has an unknown attribute, type or value, is a problem of the reading."""
        ...

    def parse(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        """The same, without problems.

        Raises:
            Refused: there are some; the message names them.
        """
        ...


class Reader:
    """What all readers have in common."""

    def read(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        """See `Format.read`."""
        raise NotImplementedError

    def parse(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        """See `Format.parse`."""
        reading = self.read(snapshot, stream)
        refuse(reading.problems)
        return reading


class Unrelated(Exception):
    """Raised by a row's reader: the row is known, and no shard of this stream; the message says what it is."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A table's rows: those that are shards, a line for each that is known not to be one, and those that were refused."""

    shards: tuple[SourceShard, ...] = ()
    skipped: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def understood(self) -> Rows:
        """These, if none was refused.

        Raises:
            Refused: some were; the first ten are named with the reasons.
        """
        refuse(self.problems)
        return self


def read_rows(snapshot: Snapshot, table: str, read: Callable[[RawItem], SourceShard]) -> Rows:
    """All rows of one table, in the order of their keys; `read` raises `Unrelated` for what is no shard, `Refused` for what it does not know."""
    shards: list[SourceShard] = []
    skipped: list[str] = []
    problems: list[Problem] = []
    for label, item in sorted(((snapshot.label(item, table), item) for item in snapshot.tables.get(table, ())), key=itemgetter(0)):
        try:
            shards.append(read(item))
        except Unrelated as other:
            skipped.append(f"{label}: {other}")
        except Refused as refused:
            problems.append(Problem(table, label, refused))
    return Rows(tuple(shards), tuple(skipped), tuple(problems))


def refuse(problems: Sequence[Problem]) -> None:
    """Raises `Refused` if there are problems: of one that is the table's alone, else of all rows of a table."""
    if whole := [p for p in problems if p.row is None]:
        raise Refused(str(whole[0].why))
    for table in dict.fromkeys(p.table for p in problems):
        refuse_all(f"table {table} has rows that are not understood", [f"row {p.row}: {p.why}" for p in problems if p.table == table])


def refuse_all(what: str, problems: Sequence[str]) -> None:
    """Raises `Refused` naming the first problems and the number of them, if there are any; `what` is what they are problems of."""
    if problems:
        rest = f"; and {len(problems) - LISTED} more" if len(problems) > LISTED else ""
        raise Refused(f"{what}: " + "; ".join(problems[:LISTED]) + rest)
