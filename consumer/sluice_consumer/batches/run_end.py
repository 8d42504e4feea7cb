"""Where a run ends: at the tip of its start, or at a timestamp (docs/protocol.md, "Where a run ends"). Pure: rows in, answers out."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches import planner
from sluice_consumer.batches.planner import TableView
from sluice_consumer.config import UntilConfig
from sluice_consumer.shards.cut import SETTLED_MILLIS


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The service's time up to which a run reads, in epoch milliseconds.

    Attributes:
        millis: that time.
        cuts: what arrived then or later is not read. False: it may be, and does not keep the run from ending (the tip).
    """

    millis: int
    cuts: bool = False

    @staticmethod
    def of(until: UntilConfig | None, listed_millis: int) -> RunEnd | None:
        """The end of a run whose epoch listed the shards at `listed_millis`; None: it has none."""
        if until is None:
            return None
        if until.millis is None:
            return RunEnd(listed_millis + 1000)  # whole seconds: the listing came before the next one
        return RunEnd(until.millis, cuts=True)

    def past(self, view: TableView) -> frozenset[str]:
        """Shards of which nothing more is delivered, though they are not at END: no batch has them."""
        return frozenset(row.id for row in view.opened if self.cuts and self._is_past(view, row))

    def _is_past(self, view: TableView, row: ShardRow) -> bool:
        """Whoever has bound the last range, it says that nothing in front of the cut is left: neither a record nor the shard's end."""
        if not planner.caught_up(view, row, self.millis):
            return False
        if row.read_to == self.millis and row.behind:
            return True  # it ends at this cut, or nothing was read since
        return _was_read(row) and self._says_so(view, row)

    def _says_so(self, view: TableView, row: ShardRow) -> bool:
        """Whether a range beyond the end came after all that lies in front of the cut."""
        settled = row.read_to >= self.millis + SETTLED_MILLIS
        if row.behind:  # a cut keeps the `read_to` of the range before, if that is later
            return _is_empty(row) and _is_cut(row) and (settled or _is_own(view, row))
        return _is_empty(row) and settled

    def reads_up_to(self, now_millis: int) -> int | None:
        """What every shard has to be read up to before it may be left out as idle; None: nothing more than usual.

        Before a timestamp is settled, idle shards wait for it as for anything else. Afterwards none is left out that is not past it.
        """
        if self.cuts:
            return None if now_millis < self.millis + SETTLED_MILLIS else sys.maxsize
        return self.millis

    def is_reached(self, view: TableView) -> bool:
        """Whether the run ends here. To be asked after planning, for that is when children of shards that ended get their rows."""
        if self.cuts:
            return not planner.next_batch(view, self.past(view)).rows and not planner.waits_for_number(view)
        return not planner.next_batch(view).rows or not self.unread(view)

    def unread(self, view: TableView) -> list[ShardRow]:
        """Rows of shards that were not read up to there."""
        if self.cuts:
            finished = self.finished(view)
            return [row for row in view.opened if row.id not in finished]
        return [row for row in view.live.values() if not planner.caught_up(view, row, self.millis)]

    def finished(self, view: TableView) -> frozenset[str]:
        """Shards that are not at END, and of which this run owes nothing more: they are past the end, or wait for one that is."""
        finished, opened = self.past(view), view.opened
        while waiting := {row.id for row in opened if row.id not in finished and row.parents & finished}:
            finished |= waiting
        return finished


def _was_read(row: ShardRow) -> bool:
    """Whether a task bound the range. One that was closed unread has no reader, and the `read_to` of the range before it."""
    return bool(row.readers)


def _is_empty(row: ShardRow) -> bool:
    """Whether the range held nothing when it was bound. What was excluded or given up since leaves its ends as they were.

    Behind the last record of a closed shard the tip may be claimed before the end is.
    """
    return row.end == row.start or row.end.millis is not None


def _is_cut(row: ShardRow) -> bool:
    """Whether an empty range that is behind the tip ends at a cut; one that is on the way leaves an iterator."""
    return row.iterator is None


def _is_own(view: TableView, row: ShardRow) -> bool:
    """Whether this epoch bound the range, so that its cut is at this end."""
    return row.batch > view.inherited
