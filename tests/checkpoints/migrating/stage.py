"""The stream that every source in the tests is of, and what a source is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sluice_checkpoints.formats.snapshot import KeySchema, TableKey
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_lab.fakes.stream import MemoryStream

Row = dict[str, Any]
Tables = dict[str, tuple[KeySchema, list[Any]]]


class Stage:
    def __init__(self, now: Callable[[], int]) -> None:
        self.stream = MemoryStream("orders", shards=2, now=now)
        self.zero, self.one = "shardId-000000000000", "shardId-000000000001"
        self.last = self.stream.put_in(self.zero, b"a")
        self.earlier = self.stream.put_in(self.one, b"b")
        self.reached = self.stream.put_in(self.one, b"b")
        self.two, self.three = self.stream.split(self.zero)
        self.begun = self.stream.put_in(self.two, b"c")

    @property
    def identity(self) -> StreamIdentity:
        return self.stream.describe()


@dataclass(frozen=True)
class Case:
    """One kind of source.

    Attributes:
        name: for people.
        table: the main table's name.
        make: its tables.
        checkpoint: what a consumer that still works does to them when it has read shard 1 up to a sequence number.
        beat: what it does anyway, every few seconds; the number says how often it has done so.
    """

    name: str
    table: str
    make: Callable[[Stage, str], Tables]
    checkpoint: Callable[[Tables, Case, str], None]
    beat: Callable[[Tables, Case, int], None]

    def __str__(self) -> str:
        return self.name


def text(**values: str) -> Row:
    return {name: {"S": value} for name, value in values.items()}


def number(**values: float) -> Row:
    return {name: {"N": str(value)} for name, value in values.items()}


def one_key(name: str) -> KeySchema:
    return (TableKey(name, "HASH", "S"),)


def find(rows: list[Any], value: str) -> Row:
    found: Row = next(row for row in rows if {"S": value} in row.values())
    return found


def sets(suffix: str, key: str, attribute: str) -> Callable[[Tables, Case, int], None]:
    def beat(tables: Tables, case: Case, times: int) -> None:
        find(tables[case.table.removesuffix("_checkpoints") + suffix][1], key)[attribute] = {"N": str(100 + times)}

    return beat
