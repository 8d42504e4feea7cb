"""Parents and children among the shards of a stream. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from sluice_checkpoints.formats.reader import SourceShard
from sluice_checkpoints.position import END, TRIM_HORIZON
from sluice_checkpoints.stream.model import Shard


@dataclass(frozen=True, slots=True)
class MissingRows:
    """Closed shards without a row.

    Attributes:
        deleted: KCL itself may have deleted the row as finished.
        waiting: KCL would have deleted it, but for children that wait for a time. The shard was closed before that time, or never read.
    """

    deleted: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()


class Lineage:
    """Which shard follows which, from the stream and, for shards it no longer knows, from the source's rows."""

    def __init__(self, rows: Mapping[str, SourceShard], shards: Mapping[str, Shard]) -> None:
        self.parents = {i: row.parents for i, row in rows.items()} | {i: frozenset(s.parents) for i, s in shards.items()}
        self.children: dict[str, set[str]] = {}
        for child, parents in self.parents.items():
            for parent in parents:
                self.children.setdefault(parent, set()).add(child)

    def below(self, ids: Iterable[str]) -> frozenset[str]:
        """All descendants of these shards."""
        return _reach(ids, lambda i: self.children.get(i, ()))

    def above(self, ids: Iterable[str]) -> frozenset[str]:
        """All ancestors of these shards."""
        return _reach(ids, lambda i: self.parents.get(i, ()))

    def missing_rows(self, rows: Mapping[str, SourceShard], shards: Mapping[str, Shard], unread: AbstractSet[str] = frozenset()) -> MissingRows:
        """Closed shards whose missing row says something in a table of KCL.

        KCL deletes the row of a finished shard only under two conditions. All its parents' rows are gone, and every child has a row that is neither
        at TRIM_HORIZON nor at AT_TIMESTAMP (`LeaseCleanupManager.cleanupLeaseForCompletedShard`). It starts no child before all its parents are
        finished, so the other parent of a merge is finished then as well. A child may have been deleted by the same rule since, or have left the
        stream. A row that was refused is there, but it does not prove that its shard was started. Nor is a shard finished which nothing with progress
        follows.

        Args:
            rows: the source's rows.
            shards: the stream's shards.
            unread: shards that have a row which could not be understood.
        """
        known = rows.keys() | unread
        passed = self.above({i for i, row in rows.items() if row.stored.progress} | unread)
        closed = {i for i, shard in shards.items() if shard.closed and i in passed} - known - self.below(known)
        waiting = frozenset(i for i, row in rows.items() if row.stored.at_timestamp)
        unproven = (i for i, row in rows.items() if row.stored.refused or row.stored.position == TRIM_HORIZON)
        unstarted = frozenset(unproven) | {i for i in rows if self._unfinished(self.parents[i], rows)}
        deleted = self._not_held(closed, rows.keys() - unstarted - waiting | unread)
        return MissingRows(deleted, self._not_held(closed, rows.keys() - unstarted | unread) - deleted)

    def _not_held(self, closed: AbstractSet[str], started: AbstractSet[str]) -> frozenset[str]:
        """Those of which every child has `started`, or is one of them itself."""
        unheld = set(closed)
        while kept := {i for i in unheld if self.children.get(i, set()) - unheld - started}:
            unheld -= kept
        return frozenset(unheld)

    @staticmethod
    def _unfinished(parents: Iterable[str], rows: Mapping[str, SourceShard]) -> bool:
        return any(parent in rows and rows[parent].stored.position != END for parent in parents)


def _reach(ids: Iterable[str], step: Callable[[str], Iterable[str]]) -> frozenset[str]:
    seen: set[str] = set()
    todo = [n for i in ids for n in step(i)]
    while todo:
        if (node := todo.pop()) not in seen:
            seen.add(node)
            todo += step(node)
    return frozenset(seen)
