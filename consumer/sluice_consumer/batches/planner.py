"""What the next micro-batch reads. Pure: rows in, plan out (docs/protocol.md, "A batch").

It may not read a clock, a table or a stream; the simulation runs these very functions.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sluice_checkpoints.letters.letter import Place
from sluice_checkpoints.position import END, TRIM_HORIZON
from sluice_checkpoints.protocol.rows import Child, ShardRow, earliest_arrival_millis
from sluice_consumer.batches.shard_rows import apart

T = TypeVar("T")
STALE_MILLIS = 3_600_000  # a shard that is left out takes part once in this time, so its `readTo` is hardly older (docs/protocol.md, "Retention")
OVERDUE_MILLIS = 2 * STALE_MILLIS  # and never older than this: then it takes part, however many others do


@dataclass(frozen=True, slots=True)
class TableView:
    """What an epoch knows when it plans.

    Attributes:
        rows: every shard row, by shard id.
        committed: last batch processed to its end.
        listed: ids that the last complete ListShards knew.
        asked: ids of the rows that were there before it was asked.
        own_commits: this epoch has committed a batch of its own; before that, what an earlier epoch may have issued must not change.
        inherited: the last batch in which an earlier epoch had bound a range of any shard.
        woken: shards that could have been left out of the last batch that read them, and took part, for a probe had found something.
        filled: the last committed batch that contained shards; 0: there is none.
    """

    rows: Mapping[str, ShardRow]
    committed: int
    listed: frozenset[str]
    asked: frozenset[str] = frozenset()
    own_commits: bool = False
    inherited: int = 0
    woken: frozenset[str] = frozenset()
    filled: int = 0

    @property
    def number(self) -> int:
        """The number of the batch that is open, or comes next."""
        return self.committed + 1

    @property
    def live(self) -> Mapping[str, ShardRow]:
        """Rows that may still matter to a plan; the others stand at END, and so do their children's parents."""
        return apart(self.rows).live

    def accounts(self, shard_id: str) -> bool:
        """Whether a shard has a row, or had one until it was over."""
        return shard_id in self.rows or shard_id in apart(self.rows).folded

    @property
    def known(self) -> int:
        """How many shards the table knows: those with a row, and those whose row is gone."""
        return len(self.rows) + apart(self.rows).gone

    @property
    def opened(self) -> list[ShardRow]:
        """Rows of shards that were not read to their end."""
        return [row for row in self.live.values() if row.committed_position(self.committed) != END]


@dataclass(frozen=True, slots=True)
class Refreshing:
    """How idle shards take part in a batch once an hour: in groups, spread over the hour by their ids.

    Attributes:
        group: about so many in each; fewer shards are one group.
        groups: the most there are: the time that is asked for advances with each audit only, 30 times an hour.
        most: so many shards a batch at most, those first that were read longest ago.
    """

    group: int = 64
    groups: int = 30
    most: int = 128


REFRESHING = Refreshing()


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """One micro-batch: its number, the rows that take part, and whether it was issued before.

    `limit`: the most user records of a shard, where those are fewer than usual; a Kinesis record is taken whole. `without`: records that an earlier
    issue has rejected, by shard, sequence number and index in an aggregate: they are read, and `process` does not see them.
    """

    number: int
    rows: tuple[ShardRow, ...]
    replay: bool = False
    limit: int | None = None
    without: frozenset[Place] = frozenset()

    @property
    def is_empty_replay(self) -> bool:
        """Whether an earlier epoch fixed that this batch contains no record: there is nothing to process."""
        return self.replay and not any(row.records for row in self.rows)


def is_read_to_end(view: TableView, child: ShardRow, parent: str) -> bool:
    """Whether a parent was read to its end: its row is at END, or it was folded, or it is neither in a row nor in the stream any more."""
    row = view.rows.get(parent)
    if row is None:
        return view.accounts(parent) or _expired(view, child, parent)
    return row.committed_position(view.committed) == END


def _expired(view: TableView, child: ShardRow, parent: str) -> bool:
    """Whether the stream no longer knows a parent that has no row, as a listing says that is no older than its child.

    It is no older if it has the child. Without the child it was asked for too soon, or the child expired, and so had all its parents, which were
    closed before it and together.
    """
    fresh = child.id in view.listed or (child.id in view.asked and view.listed.isdisjoint(child.parents))
    return fresh and parent not in view.listed


def next_batch(view: TableView, idle: frozenset[str] = frozenset()) -> BatchPlan:
    """The rows of the next batch.

    If any row was bound in this batch already, an earlier epoch began it: it is exactly those rows. Otherwise every row that may join, has not
    ended, and whose parents all ended; without the `idle` ones, of `may_be_left_out`.
    """
    if begun := _begun(view):
        return BatchPlan(view.number, begun, replay=True)
    return BatchPlan(view.number, tuple(row for row in _ordered(view.live) if row.id not in idle and _takes_part(view, row)))


def _begun(view: TableView) -> tuple[ShardRow, ...]:
    return tuple(row for row in _ordered(view.live) if row.batch == view.number)


def may_be_left_out(view: TableView, now_millis: int, refreshing: Refreshing = REFRESHING) -> tuple[ShardRow, ...]:
    """The rows that the next batch may leave out, if a probe of their shards finds nothing (docs/protocol.md, "Idle shards"). A replay: none.

    Args:
        view: what the epoch knows.
        now_millis: the service's time, late by minutes at most.
        refreshing: how those take part that were not read for about an hour.
    """
    if _begun(view):
        return ()
    idle = _quiet(view)
    refreshed = _refreshed(idle, now_millis, refreshing)
    return tuple(row for row in idle if row.id not in refreshed)


def at_the_tip(rows: Iterable[ShardRow], probed: Mapping[str, bool]) -> frozenset[str]:
    """Ids of rows that may be left out and are idle by a probe. A shard that had no turn is at the tip, as its last range said."""
    return frozenset(row.id for row in rows if probed.get(row.id, True))


def refreshed(view: TableView, now_millis: int, refreshing: Refreshing = REFRESHING) -> frozenset[str]:
    """Shards that brought nothing, and take part in the next batch all the same, so that their `readTo` does not grow old.

    One is due at the minute of the hour that its id says, once an hour, and when it was not read for an hour. Not more than `refreshing.most` in a
    batch, those that were read longest ago; only one that is overdue is never put off.
    """
    return _refreshed(_quiet(view), now_millis, refreshing)


def _quiet(view: TableView) -> list[ShardRow]:
    return [row for row in _ordered(view.live) if _is_quiet(view, row) and _takes_part(view, row)]


def _refreshed(rows: Sequence[ShardRow], now_millis: int, refreshing: Refreshing) -> frozenset[str]:
    groups = min(refreshing.groups, -(-len(rows) // refreshing.group))
    due = sorted((row for row in rows if _is_due(row, now_millis, groups)), key=lambda row: (row.read_to, row.id))
    overdue = (row for row in due[refreshing.most :] if row.read_to < now_millis - OVERDUE_MILLIS)
    return frozenset(row.id for row in (*due[: refreshing.most], *overdue))


def _is_due(row: ShardRow, now_millis: int, groups: int) -> bool:
    if groups <= 1 or is_stale(row, now_millis):
        return is_stale(row, now_millis)
    since = zlib.crc32(row.id.encode()) % groups * STALE_MILLIS // groups  # the beginning of an hour, when the group is due
    return (now_millis - since) // STALE_MILLIS > (row.read_to - since) // STALE_MILLIS


def woken(view: TableView, number: int, rows: Iterable[ShardRow]) -> frozenset[str]:
    """`TableView.woken` after batch `number`, which these rows are of; `view` is from before."""
    rows = tuple(rows)
    before = ((row.id, view.rows.get(row.id)) for row in rows)
    took_part = {shard for shard, row in before if row is not None and row.batch < number and _is_quiet(view, row)}
    return (view.woken - {row.id for row in rows}) | took_part


def _is_quiet(view: TableView, row: ShardRow) -> bool:
    """Whether this epoch bound the last range, and it came to the tip with nothing, or with the one record for which a probe had woken its shard."""
    return row.batch > view.inherited and not row.behind and row.records <= (row.id in view.woken)


def is_stale(row: ShardRow, now_millis: int) -> bool:
    """Whether nobody has read a shard for an hour, or ever, as far as its row says: one that is not read for a retention looks as if overtaken."""
    return row.read_to < now_millis - STALE_MILLIS


def _takes_part(view: TableView, row: ShardRow) -> bool:
    joined = row.joins <= view.number and row.committed_position(view.committed) != END
    return joined and not _waits(view, row)


def _ordered(rows: Mapping[str, ShardRow]) -> Iterable[ShardRow]:
    return (rows[shard_id] for shard_id in sorted(rows))


def held(view: TableView, generation: int) -> int:
    """How many shards no earlier epoch can move any more: rows that carry this generation, rows at END, which are not fenced, and folded shards."""
    return view.known - sum(row.generation != generation for row in view.opened)


def unread_since(view: TableView, millis: int) -> bool:
    """Whether an open shard was not read after a time, as far as is known of it; children that have no row yet are such shards, too.

    How old a child may be is known once all its parents were read to their ends.
    """
    rows = (*view.opened, *missing_children(view, 0))
    return any(0 < _unread_from(view, row) <= millis or (row.unread and _waits(view, row)) for row in rows)


def _unread_from(view: TableView, row: ShardRow) -> int:
    """Since when records of a shard may be unread: since it or its parents were read last, or since its start. 0: nothing is known."""
    return aged(view, row).read_to or row.end.millis or 0


def _waits(view: TableView, row: ShardRow) -> bool:
    return not all(is_read_to_end(view, row, parent) for parent in row.parents)


def aged(view: TableView, row: ShardRow) -> ShardRow:
    """The row; of a shard that nobody has read, with the `read_to` that its parents' rows give it by now."""
    parents = [view.rows[parent] for parent in row.parents if parent in view.rows] if row.unread else []
    return replace(row, read_to=max(row.read_to, earliest_arrival_millis(parents))) if parents else row


def waits_for_number(view: TableView) -> bool:
    """Whether a row joins only after the next batch: then even a batch without shards has to be committed."""
    return any(row.joins > view.number for row in view.live.values())


def missing_children(view: TableView, generation: int) -> tuple[ShardRow, ...]:
    """Rows to create for children of shards at END. Every later shard starts at its beginning."""
    joins = view.committed + (1 if view.own_commits else 2)
    known: dict[str, Child] = {}
    for row in _ordered(view.live):
        if row.children and row.committed_position(view.committed) == END:
            known |= {child.id: child for child in row.children if not view.accounts(child.id)}
    return tuple(_beginning(view, child, generation, joins) for _, child in sorted(known.items()))


def unaccounted(view: TableView, listed: Iterable[Child], generation: int) -> tuple[ShardRow, ...]:
    """Rows to create for listed shards that no row accounts for (the audit). Those that were folded are over, whoever lists them."""
    missing = {child.id: child for child in listed if not view.accounts(child.id)}
    return tuple(_beginning(view, child, generation, view.committed + 2) for _, child in sorted(missing.items()))


def needs_audit(view: TableView) -> bool:
    """Whether a parent has no row, and is listed or may be: its children wait until an audit gave it one, or found that it expired."""
    return any(not view.accounts(parent) and not _expired(view, row, parent) for row in view.live.values() for parent in row.parents)


def _beginning(view: TableView, child: Child, generation: int, joins: int) -> ShardRow:
    read_to = earliest_arrival_millis(view.rows[parent] for parent in child.parents if parent in view.rows)
    return ShardRow(child.id, TRIM_HORIZON, TRIM_HORIZON, generation=generation, joins=joins, parents=child.parents, read_to=read_to)


def deal(rows: Iterable[T], cores: int, shards_per_task: int) -> tuple[tuple[T, ...], ...]:
    """Deals shards to tasks: about one task a core, never more than `shards_per_task` shards each (each further task costs 40 ms of CPU)."""
    rows = tuple(rows)
    tasks = max(min(cores, len(rows)), -(-len(rows) // shards_per_task))
    return tuple(rows[i::tasks] for i in range(tasks))
