"""An Iceberg table in memory: snapshots, tags and branches, commits that fail if another one came first, and what its owner does to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sluice_consumer.sinks.iceberg.lineage import LineageSnapshot, Mark

CONSUMER = "c"


@dataclass
class LakeTable:
    """Metadata of one version of the table. It is `lineage.SnapshotLineage`, too.

    Attributes:
        held: the batches that readers of a snapshot see; below 0: rows of other writers.
        head: of the branch that moves with the mark.
        staging: the head of the other one.
    """

    main: int | None = None
    snapshots: dict[int, LineageSnapshot] = field(default_factory=dict)
    held: dict[int, tuple[int, ...]] = field(default_factory=dict)
    tagged: dict[int, int] = field(default_factory=dict)
    head: int | None = None
    staging: int | None = None
    commits: int = 0

    def snapshot(self, number: int) -> LineageSnapshot | None:
        return self.snapshots.get(number)

    def tags(self, _consumer: str) -> dict[int, int]:
        return self.tagged

    def branch(self, _consumer: str) -> int | None:
        return self.head

    def copy(self) -> LakeTable:
        return replace(self, snapshots=dict(self.snapshots), held=dict(self.held), tagged=dict(self.tagged))

    def add(self, parent: int | None, batches: tuple[int, ...], batch: int | None = None) -> int:
        number = max(self.held, default=0) + 1
        self.snapshots[number] = LineageSnapshot(number, parent, number, CONSUMER if batch else None, batch)
        self.held[number] = (self.held[parent] if parent is not None else ()) + batches
        return number

    @property
    def visible(self) -> tuple[int, ...]:
        return self.held[self.main] if self.main is not None else ()

    def shown(self) -> bool:
        """Whether anything still names the consumer's last publication, if there was one: more an owner must not take away."""
        last = max((0, *self.visible))
        lines = [*self.line(self.main), *self.line(self.head)]
        return last == 0 or any(batch >= last for batch in self.tagged) or any((each.batch or 0) >= last for each in lines)

    def line(self, start: int | None) -> Iterator[LineageSnapshot]:
        """Until the first that has expired."""
        at = self.snapshots.get(start) if start is not None else None
        while at is not None:
            yield at
            at = self.snapshots.get(at.parent) if at.parent is not None else None


class Lake:
    def __init__(self, dice: random.Random) -> None:
        self.table, self._dice = LakeTable(), dice
        self.acts: list[Callable[[LakeTable], None]] = [_other_writer, self._roll_back, _replace, _drop_tags, _drop_branch, _expire]

    def commit(self, base: int, change: Callable[[LakeTable], None]) -> bool:
        """Changes the table, if nobody did since its commit `base`."""
        if base != self.table.commits:
            return False
        self._change(change)
        return True

    def owner(self) -> None:
        """One act at random; not one after which the table shows nothing of the consumer, though it holds rows of it (docs/sinks.md)."""
        before = self.table
        self._change(self._dice.choice(self.acts))
        if not self.table.shown():
            self.table = replace(before, commits=self.table.commits)

    def way_out(self, mark: Mark) -> None:
        """One of the two that a refusal names."""

        def drop(table: LakeTable) -> None:
            table.tagged, table.head = {}, None

        def bring_back(table: LakeTable) -> None:
            table.main = mark.lost

        self._change(self._dice.choice([drop, bring_back]) if mark.lost in self.table.snapshots else drop)

    def _change(self, change: Callable[[LakeTable], None]) -> None:
        after = self.table.copy()
        change(after)
        after.commits += 1
        self.table = after

    def _roll_back(self, table: LakeTable) -> None:
        line = list(table.line(table.main))
        if line:
            table.main = self._dice.choice(line[:3]).id


def _other_writer(table: LakeTable) -> None:
    table.main = table.add(table.main, (-1 - table.commits,))


def _replace(table: LakeTable) -> None:
    table.main = table.add(None, ())


def _drop_tags(table: LakeTable) -> None:
    table.tagged = {}


def _drop_branch(table: LakeTable) -> None:
    table.head = None


def _expire(table: LakeTable) -> None:
    kept = {table.main, table.head, table.staging, *table.tagged.values()}
    table.snapshots = {number: each for number, each in table.snapshots.items() if number in kept}
