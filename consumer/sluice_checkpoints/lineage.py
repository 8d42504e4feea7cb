"""Who follows whom among the shards of a stream. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sluice_checkpoints.source import SourceShard
from sluice_checkpoints.stream import Shard


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


def _reach(ids: Iterable[str], step: Callable[[str], Iterable[str]]) -> frozenset[str]:
    seen: set[str] = set()
    todo = [n for i in ids for n in step(i)]
    while todo:
        if (node := todo.pop()) not in seen:
            seen.add(node)
            todo += step(node)
    return frozenset(seen)
