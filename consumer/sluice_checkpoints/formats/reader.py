"""The port to another system's checkpoint tables: what a reader of one format makes of a snapshot of them. Pure.

An attribute is read with its type. What a reader does not understand it refuses by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from operator import itemgetter
from typing import Protocol

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem, Snapshot
from sluice_checkpoints.position import Position
from sluice_checkpoints.stream.model import StreamIdentity

SHARD_ID = re.compile(r"shardId-[0-9]{12}")
Types = Mapping[str, str]  # attribute → the type tags it may have, separated by spaces
LISTED = 10  # rows named in a message; the rest is counted


class UnknownAttribute(Refused):
    """A row has attributes, `names`, that its format does not know: one of them may hold the position."""

    def __init__(self, names: Iterable[str], text: str) -> None:
        super().__init__(text)
        self.names = tuple(names)


def check_types(item: RawItem, types: Types) -> None:
    """Raises `UnknownAttribute` for attributes that are not in `types`, and `Refused` for one of another type than there."""
    if unknown := [name for name in item if name not in types]:
        raise UnknownAttribute(unknown, "unknown attribute " + ", ".join(f"{name} (type {next(iter(item[name]))})" for name in unknown))
    for name, tagged in item.items():
        (tag,) = tagged
        if tag not in types[name].split():
            raise Refused(f"attribute {name} has type {tag}, expected {' or '.join(types[name].split())}")


def text(item: RawItem, name: str) -> str:
    """A string that has to be there."""
    value = text_or_none(item, name)
    if value is None:
        raise Refused(f"attribute {name} is missing")
    return value


def text_or_none(item: RawItem, name: str) -> str | None:
    """A string; None: it is absent, or NULL."""
    ((tag, value),) = item.get(name, {"NULL": True}).items()
    if tag not in {"S", "NULL"}:
        raise Refused(f"attribute {name} has type {tag}, expected S")
    return str(value) if tag == "S" else None


def count(item: RawItem, name: str) -> int:
    """A whole number of 0 or more; one that is missing is 0."""
    written = str(item.get(name, {"N": "0"}).get("N", ""))
    try:
        number = Decimal(written)
    except InvalidOperation:
        number = Decimal(-1)
    if number < 0 or number != number.to_integral_value():
        raise Refused(f"{name} {written!r} is not a whole number of 0 or more")
    return int(number)


def shard_id(item: RawItem, name: str) -> str:
    """A shard's id that has to be there."""
    value = text(item, name)
    if not SHARD_ID.fullmatch(value):
        raise Refused(f"{name} {value!r} is not a shard id")
    return value


def shard_ids(item: RawItem, name: str) -> frozenset[str]:
    """A set of shard ids; none where it is missing."""
    ids = frozenset(map(str, item.get(name, {"SS": []})["SS"]))
    if strange := sorted(i for i in ids if not SHARD_ID.fullmatch(i)):
        raise Refused(f"{name} holds {strange[0]!r}, which is not a shard id")
    return ids


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """The position that a row stores of its shard.

    Attributes:
        text: as it is stored, for people.
        position: None where the row names no position: it was never started (`LATEST` before the first checkpoint), or waits for a time.
        at_timestamp: it is to start at a time that the table does not hold.
        again: why records after `position` were processed before, where that is known; they will be read again.
        refused: the row is there, and what it says was refused: it proves nothing.
    """

    text: str
    position: Position | None = None
    at_timestamp: bool = False
    again: str | None = None
    refused: bool = False

    @property
    def progress(self) -> bool:
        """Whether anything of the shard was ever acknowledged."""
        return self.position is not None and self.position.at in {"AFTER", "END"}


@dataclass(frozen=True, slots=True)
class SourceShard:
    """One shard's row in a source: `parents` and `children` as stored there (they may be incomplete), `notes` are warnings for people."""

    id: str
    stored: StoredPosition
    parents: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


class OtherStream(Refused):
    """What was read is of another stream, or of an earlier one of the same name."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A row of a source that must not be acted on: the row's key (None: it is the table as a whole), and why."""

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

    @property
    def attributes(self) -> frozenset[str]:
        """Every attribute that it knows."""
        ...

    def companions(self, table: str, keys: KeySchema | None) -> tuple[str, ...]:
        """Names of tables that this format may have beside a main table of this key (None: it is not there); none if it is another format's."""
        ...

    def fits(self, table: str, schemas: Mapping[str, KeySchema]) -> bool:
        """Whether the tables that exist, the main one and companions, are of this format."""
        ...

    def quiet_seconds(self, snapshot: Snapshot) -> float:
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


class FormatReader:
    """What all readers have in common."""

    key: KeySchema
    attributes: frozenset[str]

    def companions(self, table: str, keys: KeySchema | None) -> tuple[str, ...]:
        """None; see `Format.companions`."""
        del table, keys
        return ()

    def fits(self, table: str, schemas: Mapping[str, KeySchema]) -> bool:
        """By the main table's key; see `Format.fits`."""
        return schemas.get(table) == self.key

    def read(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        raise NotImplementedError

    def parse(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        reading = self.read(snapshot, stream)
        refuse(reading.problems)
        return reading


class UnrelatedRow(Exception):
    """Raised by a row's reader: the row is known, and no shard of this stream; the message says what it is."""


@dataclass(frozen=True, slots=True)
class SortedRows:
    """A table's rows: those that are shards, a line for each that is known not to be one, and those that were refused."""

    shards: tuple[SourceShard, ...] = ()
    skipped: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_rows(snapshot: Snapshot, table: str, read: Callable[[RawItem], SourceShard]) -> SortedRows:
    """Rows of one table, in the order of their keys; `read` raises `UnrelatedRow` for what is not a shard, `Refused` for what it does not know."""
    shards: list[SourceShard] = []
    skipped: list[str] = []
    problems: list[Problem] = []
    for label, item in sorted(((snapshot.label(item, table), item) for item in snapshot.tables.get(table, ())), key=itemgetter(0)):
        try:
            shards.append(read(item))
        except UnrelatedRow as other:
            skipped.append(f"{label}: {other}")
        except Refused as refused:
            problems.append(Problem(table, label, refused))
    return SortedRows(tuple(shards), tuple(skipped), tuple(problems))


def refuse(problems: Sequence[Problem], way_on: str = "") -> None:
    """Raises `Refused` if there are problems: of one that is the table's alone, else of all rows of a table. `way_on` ends the message then."""
    if whole := [p for p in problems if p.row is None]:
        raise Refused(str(whole[0].why))
    for table in dict.fromkeys(p.table for p in problems):
        refuse_all(f"table {table} has rows that are not understood", [f"row {p.row}: {p.why}" for p in problems if p.table == table], way_on)


def refuse_all(what: str, problems: Sequence[str], way_on: str = "") -> None:
    """Raises `Refused` naming the first problems and the number of them, if there are any; `what` is what they are problems of.

    `way_on` ends the message: what a person can do.
    """
    if problems:
        rest = f"; and {len(problems) - LISTED} more" if len(problems) > LISTED else ""
        raise Refused(f"{what}: " + "; ".join(problems[:LISTED]) + rest + way_on)
