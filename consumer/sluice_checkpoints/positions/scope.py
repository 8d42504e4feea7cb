"""Which shards a reset is about, and how they descend from each other. Pure.

Parents and children are taken from the rows and from the listing. A row that was moved back from END does not name its children any more. So a
shard's children are those that name it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.folding import TableShards
from sluice_checkpoints.protocol.rows import Child
from sluice_checkpoints.stream.model import Shard, ShardList

NAMED = 5  # shards that a message names


def named(shards: Iterable[str]) -> str:
    """The first of these shards, for people."""
    ids = sorted(shards)
    return ", ".join(ids[:NAMED]) + (f" and {counted(len(ids) - NAMED, 'more shard')}" if len(ids) > NAMED else "")


@dataclass(frozen=True)
class ShardGraph:
    """What rows and a listing say of the shards of a stream.

    Attributes:
        table: what the table says of shards.
        listed: the stream's shards.
    """

    table: TableShards
    listed: ShardList

    @cached_property
    def shards(self) -> Mapping[str, Shard]:
        """The shards that the stream has, by id."""
        return {shard.id: shard for shard in self.listed.shards}

    @cached_property
    def parents(self) -> Mapping[str, frozenset[str]]:
        """The shards that each shard follows, as far as rows or the listing say."""
        ids = sorted(self.shards.keys() | self.table.rows.keys())
        return {i: self._row_parents(i) | frozenset(self.shards[i].parents if i in self.shards else ()) for i in ids}

    @cached_property
    def _following(self) -> Mapping[str, tuple[str, ...]]:
        following: dict[str, list[str]] = {}
        for shard, parents in self.parents.items():
            for parent in parents:
                following.setdefault(parent, []).append(shard)
        return {shard: tuple(children) for shard, children in following.items()}

    def positions(self, committed: int) -> dict[str, Position]:
        """Where each shard is that was not folded."""
        rows, known = self.table.rows, self.parents.keys() - self.table.folded.keys()
        return {shard: rows[shard].committed_position(committed) if shard in rows else TRIM_HORIZON for shard in known}

    def children(self, shard: str) -> tuple[Child, ...]:
        """The shards that follow a shard directly."""
        return tuple(Child(i, self.parents[i]) for i in self._following.get(shard, ()))

    def descendants(self, shards: Iterable[str]) -> frozenset[str]:
        """All that follow these shards, in any generation."""
        left, descendants = list(shards), set[str]()
        while left:
            new = set(self._following.get(left.pop(), ())) - descendants
            descendants |= new
            left += new
        return frozenset(descendants)

    def _row_parents(self, shard: str) -> frozenset[str]:
        row = self.table.rows.get(shard)
        return row.parents if row is not None else frozenset()


def check_listing(lineage: ShardGraph) -> None:
    """Makes sure that the listing is no older than the table. Parents leave a stream before their children, so it lacks none whose parent it has.

    Raises:
        ServiceUnavailable: it is older.
    """
    listed = lineage.shards.keys()
    if late := [shard for shard, parents in lineage.parents.items() if shard not in listed and not listed.isdisjoint(parents)]:
        raise ServiceUnavailable(f"the listing of the stream lacks {named(late)}, though it has their parents: it is too old; run this again")


def out_of_order(graph: ShardGraph, after: Mapping[str, Position], moved: frozenset[str]) -> dict[str, frozenset[str]]:
    """Shards that would begin behind their beginning, and those that they follow and that are not at their end then; if either of them is moved.

    At a time at which a parent is read, or before that, a shard is at its beginning.
    """
    waiting: dict[str, frozenset[str]] = {}
    for shard, position in after.items():
        parents = {parent: after.get(parent, END) for parent in graph.parents.get(shard, frozenset()) & graph.shards.keys()}
        waits = frozenset(parent for parent, at in parents.items() if at != END and position != TRIM_HORIZON and not _is_beginning(position, at))
        if waits and not moved.isdisjoint({shard, *waits}):
            waiting[shard] = waits
    return waiting


def _is_beginning(position: Position, parent: Position) -> bool:
    return position.millis is not None and parent.millis is not None and position.millis <= parent.millis


def scope(lineage: ShardGraph, asked: frozenset[str]) -> frozenset[str]:
    """The shards that a reset is about: those that are asked for, or all; without those that were folded, which are read no more.

    Raises:
        Refused: a shard is unknown or was folded, or one that follows is not asked for.
    """
    known = frozenset(lineage.parents) - lineage.table.folded.keys()
    if not asked:
        return known
    if over := asked & lineage.table.folded.keys():
        raise Refused(f"--shard: {named(over)} was read to the end and has left the stream, so nothing of it can be read again; name its children")
    if unknown := asked - known:
        raise Refused(f"--shard: neither the table nor the stream has {named(unknown)}; `sluice show` lists the shards of the table")
    if missing := (lineage.descendants(asked) & known) - asked:
        raise Refused(
            f"--shard: {named(missing)} would be read before the shards that come first; shards that follow must be moved as well: "
            f"add {' '.join(f'--shard {shard}' for shard in sorted(missing)[:NAMED])}{' …' if len(missing) > NAMED else ''}, or leave --shard out"
        )
    return asked
