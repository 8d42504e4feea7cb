"""Folds rows of shards that are over, so that a table does not grow for ever (docs/protocol.md, "Folded shards").

What may be folded is decided by pure functions. Folding is never urgent: where it is refused or gets no answer, the rows stay.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Fenced, ProtocolViolation, ServiceUnavailable, SluiceError
from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.protocol import folding
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.table import chunks
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.planner import TableView
from sluice_consumer.batches.shard_rows import ShardRows

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoldLimits:
    """When rows are folded, and how many at a time.

    Attributes:
        least: fewer that may be folded stay: a table of ordinary size is left alone.
        group: ids in a row, and rows that are deleted together: a transaction has 100 members.
        writes: folds after an audit, and deletes; each is a transaction.
        margin_millis: so much longer than the stream keeps records.
        rests: audits that pass without folding once the table gave no answer: an hour.
    """

    least: int = 1000
    group: int = 90
    writes: int = 4
    margin_millis: int = 3_600_000
    rests: int = 30

    @property
    def most(self) -> int:
        """Shards that are folded after an audit, or rows deleted."""
        return self.group * self.writes


FOLD_LIMITS = FoldLimits()


def foldable(view: TableView, expired_millis: int, least: int = 1) -> list[ShardRow]:
    """Rows whose shards may be folded, those first that were read longest ago. Once they may, they always may, unless they are listed again.

    Args:
        view: what the epoch knows, right after an audit.
        expired_millis: what was read up to then has left the stream, and its margin is over.
        least: nothing is looked for where it is certain that there are fewer.
    """
    rows = _apart(view)
    unlisted = [row for row in rows.over.values() if row.read_to < expired_millis and _has_left(view, row)]
    if len(unlisted) < least:
        return []
    newest, children = max((row.batch for row in rows.values() if row.batch <= view.committed), default=0), _children(rows)
    found = (row for row in unlisted if row.batch < newest and _is_past(view, row, children[row.id], expired_millis))
    return sorted(found, key=lambda row: (row.read_to, row.id))


def _apart(view: TableView) -> ShardRows:
    return view.rows if isinstance(view.rows, ShardRows) else ShardRows(view.rows)


def _has_left(view: TableView, row: ShardRow) -> bool:
    """Whether the last listing lacks a shard that was not folded yet."""
    return row.id not in view.listed and row.id not in _apart(view).folded


def _children(rows: Mapping[str, ShardRow]) -> dict[str, list[ShardRow]]:
    """Rows by the shards that they follow, as they say or their parents."""
    found: dict[str, list[ShardRow]] = defaultdict(list)
    for row in rows.values():
        for parent in row.parents:
            found[parent].append(row)
        found[row.id].extend(rows[child.id] for child in row.children or () if child.id in rows)
    return found


def _is_past(view: TableView, row: ShardRow, children: Sequence[ShardRow], expired_millis: int) -> bool:
    """Whether nothing of a shard is left to read, and none of its children asks for its row any more.

    A row that was at END when the table began has no time of its own. Its children are younger.
    """
    read_to = row.read_to or max((child.read_to for child in children), default=0)
    return read_to < expired_millis and all(_has_begun(view, child) for child in children)


def _has_begun(view: TableView, child: ShardRow) -> bool:
    """Whether a shard's row says how old its records may be: before that its first range asks the rows of its parents."""
    return child.committed_position(view.committed) != TRIM_HORIZON or (child.batch <= view.committed and child.read_to > 0)


def deletable(rows: ShardRows, limits: FoldLimits = FOLD_LIMITS) -> list[list[ShardRow]]:
    """Rows of folded shards that may be deleted, in transactions to be made one after the other: parents first.

    So no row at END ever names a child that has lost its row: an older version would give it a new one.
    """
    leaving = {row.id: row for row in rows.over.values() if row.id in rows.folded}
    before = _before(rows, leaving) if leaving else {}
    parts: list[list[ShardRow]] = []
    gone: set[str] = set()
    for _ in range(limits.writes):
        part = sorted(shard for shard in leaving if before[shard] <= gone)[: limits.group]
        parts.append([leaving.pop(shard) for shard in part])
        gone.update(part)
    return [part for part in parts if part]


def _before(rows: ShardRows, leaving: Mapping[str, ShardRow]) -> dict[str, set[str]]:
    """Shards whose rows have to go before that of each of these."""
    before = {shard: {parent for parent in row.parents if parent in rows} for shard, row in leaving.items()}
    for row in rows.values():
        for child in row.children or ():
            if child.id in before:
                before[child.id].add(row.id)
    return before


class Folder:
    """Folds for one epoch, after its audits."""

    def __init__(self, consumer: Consumer, limits: FoldLimits = FOLD_LIMITS) -> None:
        self._consumer, self._limits, self._denied = consumer, limits, False
        self._found: list[ShardRow] = []
        self._rests = 0

    def turn(self) -> None:
        """Deletes rows of shards that were folded in an earlier turn, then folds more. To be called right after an audit.

        Raises:
            Fenced: a later epoch took over. ProtocolViolation: a row is not as it was read.
        """
        self._rests -= 1
        if self._denied or self._rests > 0:
            return
        try:
            self._delete()
            self._fold()
        except (Fenced, ProtocolViolation):
            raise
        except ServiceUnavailable as error:
            self._rests = self._limits.rests
            log.warning("rows of ended shards stay for now: %s", error)
        except SluiceError as error:
            self._denied = True
            name = self._consumer.store.table.name
            log.warning("rows of ended shards stay in table %s: %s. To have them folded, grant the driver dynamodb:DeleteItem", name, error)

    def _delete(self) -> None:
        for part in deletable(self._rows, self._limits):
            folding.delete(self._consumer.store, self._consumer.epoch, part)
            self._plans_from(self._rows.without({row.id for row in part}))

    def _fold(self) -> None:
        limits, rows = self._limits, self._rows
        if len(rows.over) < limits.least or len(rows.folded & rows.over.keys()) >= limits.most:
            return  # rows that were folded have to go first, and a narrow lineage takes long
        if len(self._found) < limits.least:
            self._found = foldable(self._consumer.view, self._expired_millis, limits.least)
        if len(self._found) < limits.least:
            return
        due, self._found = self._found[: limits.most], self._found[limits.most :]
        for part in chunks([row for row in due if _has_left(self._consumer.view, row)], limits.group):
            self._plans_from(self._rows.fold(folding.fold(self._consumer.store, self._consumer.epoch, part)))

    @property
    def _rows(self) -> ShardRows:
        return _apart(self._consumer.view)

    def _plans_from(self, rows: ShardRows) -> None:
        self._consumer.view = replace(self._consumer.view, rows=rows)

    @property
    def _expired_millis(self) -> int:
        stream = self._consumer.identity
        assert stream is not None  # noqa: S101 - an audit asked who it is
        return self._consumer.listed_millis - stream.retention_millis - self._limits.margin_millis
