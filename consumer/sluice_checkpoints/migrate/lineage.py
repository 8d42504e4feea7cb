"""Parents and children among the shards of a stream. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from sluice_checkpoints.formats.reader import SourceShard
from sluice_checkpoints.position import END, TRIM_HORIZON
from sluice_checkpoints.stream.model import Shard


class Lineage:
    """Who follows whom, from the stream and, for shards it no longer knows, from the source's rows."""

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

    def deleted_as_finished(
        self, rows: Mapping[str, SourceShard], shards: Mapping[str, Shard], unread: AbstractSet[str] = frozenset()
    ) -> frozenset[str]:
        """Closed shards whose missing row KCL itself may have deleted.

        KCL deletes the row of a finished shard only when all its parents' rows are gone and every child has a row that has left TRIM_HORIZON
        (`LeaseCleanupManager.cleanupLeaseForCompletedShard`). It starts no child before all its parents are finished, so the other parent of a merge
        is finished then, too. A child may have been deleted by the same rule since, or have left the stream.

        Args:
            rows: the source's rows.
            shards: the stream's shards.
            unread: shards that have a row which could not be understood.
        """
        known = rows.keys() | unread
        unfinished = frozenset(i for i, row in rows.items() if row.stored.position != END)
        found = {i for i, shard in shards.items() if shard.closed} - known - self.below(known)
        while kept := {i for i in found if any(self._holds(child, rows, unfinished) for child in self.children.get(i, set()) - found - unread)}:
            found -= kept
        return frozenset(found)

    def _holds(self, child: str, rows: Mapping[str, SourceShard], unfinished: AbstractSet[str]) -> bool:
        """Whether KCL would have kept the row of a parent because of this child."""
        row = rows.get(child)
        return row is None or row.stored.position == TRIM_HORIZON or not unfinished.isdisjoint(self.parents[child])


def _reach(ids: Iterable[str], step: Callable[[str], Iterable[str]]) -> frozenset[str]:
    seen: set[str] = set()
    todo = [n for i in ids for n in step(i)]
    while todo:
        if (node := todo.pop()) not in seen:
            seen.add(node)
            todo += step(node)
    return frozenset(seen)
