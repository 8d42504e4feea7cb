"""All rows of a table by shard id, those apart that are over. Pure.

A stream that is resharded for years leaves thousands of rows of shards that were read to their end. They are looked up, and no longer walked:
planning, metrics and warnings go through the others only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from sluice_checkpoints.position import END
from sluice_checkpoints.protocol.rows import ShardRow


class ShardRows(Mapping[str, ShardRow]):
    """Rows by shard id; never changed.

    Attributes:
        live: all that may still matter to a plan.
        over: rows at END in a committed batch, whose children all have rows. Nothing changes them any more.
        folded: shards that are over, as rows `ended/<id>` say. Some of them may still have their own row.
        gone: how many of those have none.
    """

    __slots__ = ("folded", "gone", "live", "over")

    def __init__(
        self, live: Mapping[str, ShardRow], over: Mapping[str, ShardRow] | None = None, folded: AbstractSet[str] = frozenset(), gone: int = 0
    ) -> None:
        self.live, self.over, self.folded, self.gone = live, over or {}, folded, gone

    @staticmethod
    def of(rows: Mapping[str, ShardRow], committed: int, folded: AbstractSet[str] = frozenset()) -> ShardRows:
        """Rows as a table has them, and the shards that were folded, while `committed` is the last committed batch."""
        return _counted(ShardRows({}, folded=folded).known(rows.values(), committed))

    def fold(self, shards: AbstractSet[str]) -> ShardRows:
        """With these shards folded, too."""
        return _counted(ShardRows(self.live, self.over, self.folded | shards))

    def without(self, shards: AbstractSet[str]) -> ShardRows:
        """Without rows that are over and were deleted."""
        return _counted(ShardRows(self.live, {shard: row for shard, row in self.over.items() if shard not in shards}, self.folded))

    def known(self, rows: Iterable[ShardRow], committed: int) -> ShardRows:
        """With these rows in place of what was known of their shards. Rows that are over are copied only when one joins them."""
        live = dict(self.live) | {row.id: row for row in rows}
        ended = [row for row in live.values() if row.committed_position(committed) == END]
        over = {row.id: row for row in ended if all(self._accounts(child.id, live) for child in row.children or ())}
        if not over:
            return ShardRows(live, self.over, self.folded, self.gone)
        return ShardRows({shard: row for shard, row in live.items() if shard not in over}, dict(self.over) | over, self.folded, self.gone)

    def _accounts(self, shard: str, live: Mapping[str, ShardRow]) -> bool:
        return shard in live or shard in self.over or shard in self.folded

    def __getitem__(self, shard_id: str) -> ShardRow:
        row = self.live.get(shard_id)
        return self.over[shard_id] if row is None else row

    def __contains__(self, shard_id: object) -> bool:
        return shard_id in self.live or shard_id in self.over

    def __iter__(self) -> Iterator[str]:
        yield from self.live
        yield from self.over

    def __len__(self) -> int:
        return len(self.live) + len(self.over)


def _counted(rows: ShardRows) -> ShardRows:
    return ShardRows(rows.live, rows.over, rows.folded, sum(shard not in rows for shard in rows.folded))


def apart(rows: Mapping[str, ShardRow]) -> ShardRows:
    """Rows with those apart that are over; of a plain map none is known to be."""
    return rows if isinstance(rows, ShardRows) else ShardRows(rows)
