"""Folds rows of shards that are over, so that a table does not grow for ever (docs/protocol.md, "Folded shards").

What may be folded is decided by pure functions. Folding is never urgent: where it is refused or gets no answer, the rows stay. It comes between two
batches, and no batch waits for more than a few seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import AccessDenied, Fenced, SluiceError
from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.protocol import folding
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import chunks
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.planner import TableView
from sluice_consumer.batches.shard_rows import ShardRows, apart

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoldLimits:
    """When rows are folded, and how many at a time.

    Attributes:
        least: fewer that may be folded stay: a table of ordinary size is left alone.
        group: ids in a row, and rows that are deleted together: a transaction has 100 members.
        writes: folds after an audit, and deletes; each is a transaction.
        seconds: after them no further transaction of a turn begins, for a batch waits.
        rests: audits that pass without folding once a transaction failed: an hour.
    """

    least: int = 1000
    group: int = 90
    writes: int = 4
    seconds: float = 2.0
    rests: int = 30

    @property
    def most(self) -> int:
        """Shards that are folded after an audit, or rows deleted."""
        return self.group * self.writes


FOLD_LIMITS = FoldLimits()


def foldable(view: TableView, least: int = 1) -> list[ShardRow]:
    """Rows whose shards may be folded. Once they may, they always may, unless they are listed again.

    Args:
        view: what the epoch knows, right after an audit.
        least: nothing is looked for where it is certain that there are fewer.
    """
    rows = apart(view.rows)
    unlisted = [row for row in rows.over.values() if _has_left(view, row) and row.id not in rows.folded]
    if len(unlisted) < least:
        return []
    asked = _asked(view)
    return [row for row in unlisted if row.batch < view.filled and not (row.id in asked and row.open_at)]


def _has_left(view: TableView, row: ShardRow) -> bool:
    return row.id not in view.listed


def _asked(view: TableView) -> set[str]:
    """Shards whose rows are asked by their children how old those' records may be: in their first range, so by none that is over."""
    waiting = {row.id: row for row in view.live.values() if not _has_begun(view, row)}
    named = (row.id for row in view.rows.values() if any(child.id in waiting for child in row.children or ())) if waiting else ()
    return {*named, *(parent for row in waiting.values() for parent in row.parents)}


def _has_begun(view: TableView, row: ShardRow) -> bool:
    """Whether a shard's row says how old its records may be."""
    return row.committed_position(view.committed) != TRIM_HORIZON or (row.batch <= view.committed and row.read_to > 0)


@dataclass(frozen=True)
class FoldPorts:
    """What folding needs beside the rows of its epoch.

    Attributes:
        store: the table; its answers come within a few seconds, or not at all.
        clock: monotonic, in seconds.
        stops: whether the driver is to drain: no further transaction begins.
    """

    store: CheckpointStore
    clock: Callable[[], float]
    stops: Callable[[], bool] = lambda: False


class Folder:
    """Folds for one epoch, after its audits."""

    def __init__(self, consumer: Consumer, ports: FoldPorts, limits: FoldLimits = FOLD_LIMITS) -> None:
        self._consumer, self._ports, self._limits = consumer, ports, limits
        self._denied = False
        self._foldable: list[ShardRow] = []
        self._changed = frozenset[str]()
        self._rests = 0
        self._ends = 0.0

    def fold(self) -> None:
        """Deletes rows of shards that were folded in an earlier turn, then folds more. To be called right after an audit.

        Raises:
            Fenced: a later epoch took over.
        """
        self._rests -= 1
        if self._denied or self._rests > 0:
            return
        self._ends = self._ports.clock() + self._limits.seconds
        try:
            self._delete()
            self._fold()
        except Fenced:
            raise
        except SluiceError as error:
            self._gives_up(error)

    def _gives_up(self, error: SluiceError) -> None:
        """For the life of this driver if its role lacks the permission; else for an hour."""
        name = self._name
        if isinstance(error, AccessDenied):
            self._denied = True
            log.warning("rows of ended shards stay in table %s: %s. To have them folded, grant the driver dynamodb:DeleteItem", name, error)
            return
        self._rests = self._limits.rests
        log.warning("rows of ended shards stay in table %s for an hour: %s", name, error)

    def _delete(self) -> None:
        rows, limits = self._rows, self._limits
        leaving = [row for row in rows.over.values() if row.id in rows.folded and row.id not in self._changed]
        for chunk in chunks(leaving[: limits.most], limits.group):
            if self._is_over:
                return
            self._deletes(chunk)

    def _deletes(self, chunk: list[ShardRow]) -> None:
        refused = folding.delete(self._ports.store, self._consumer.epoch, chunk)
        changed = {shard for shard, row in refused.items() if row is not None}
        gone = refused.keys() - changed if refused else {row.id for row in chunk}
        self._plans_from(self._rows.without(gone))
        if changed:
            self._changed |= changed
            log.warning("rows of %s in table %s stay: their shards are over, and somebody changed them", ", ".join(sorted(changed)[:10]), self._name)

    def _fold(self) -> None:
        limits = self._limits
        if len(self._rows.over) < limits.least:
            return
        if len(self._foldable) < limits.least:
            self._foldable = foldable(self._consumer.view, limits.least)
        if len(self._foldable) < limits.least:
            return
        for chunk in chunks(self._foldable[: limits.most], limits.group):
            if self._is_over:
                return
            self._write([row for row in chunk if _has_left(self._consumer.view, row)])
            self._foldable = self._foldable[len(chunk) :]

    def _write(self, rows: list[ShardRow]) -> None:
        if rows:
            ended = folding.fold(self._ports.store, self._consumer.epoch, rows, self._consumer.listed_millis)
            self._plans_from(self._rows.fold(ended.shards))

    @property
    def _is_over(self) -> bool:
        return self._ports.stops() or self._ports.clock() >= self._ends

    @property
    def _name(self) -> str:
        return self._ports.store.table.name

    @property
    def _rows(self) -> ShardRows:
        return apart(self._consumer.view.rows)

    def _plans_from(self, rows: ShardRows) -> None:
        self._consumer.view = replace(self._consumer.view, rows=rows)
