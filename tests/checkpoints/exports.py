"""Rows of another system that an export changes, and the time it takes."""

from __future__ import annotations

from typing import Any

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.formats.snapshot import RawItem
from sluice_checkpoints.formats.writer import FormatWriter, RowChange, TargetTables

# One value of each type that any of the formats has, and another one.
VALUES: dict[str, tuple[Any, Any]] = {
    "S": ("a", "b"),
    "N": ("7", "8"),
    "SS": (["x", "y"], ["x"]),
    "B": (b"\x01", b"\x02"),
    "NULL": (True, None),
}


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def patience(self) -> Patience:
        return Patience(limit=30, clock=self.clock, sleep=self.sleep, dice=lambda: 1.0)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def item(writer: FormatWriter, key: str = "a", which: int = 0) -> RawItem:
    keys = {k.name for k in writer.keys}
    row = {n: {tag: VALUES[tag][which]} for n, tags in writer.types.items() for tag in tags.split()[:1] if n not in keys}
    return row | {n: {"S": key} for n in keys}


def change(writer: FormatWriter, before: RawItem | None, after: RawItem) -> RowChange:
    return RowChange(writer.keys, before, after, frozenset(writer.types))


def standing(tables: TargetTables, writer: FormatWriter, name: str, *rows: RawItem) -> None:
    tables.create(name, writer.keys)
    for row in rows:
        assert tables.write(name, [change(writer, None, row)]) == {}


def only(tables: TargetTables, name: str) -> RawItem:
    (row,) = tables.scan(name)
    return {n: {tag: sorted(v) if tag == "SS" else v for tag, v in tagged.items()} for n, tagged in row.items()}
