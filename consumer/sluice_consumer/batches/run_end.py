"""Where a run ends: at the tip of its start, or at a timestamp (docs/protocol.md, "Where a run ends"). Pure: rows in, answers out."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches import planner
from sluice_consumer.batches.planner import TableView
from sluice_consumer.config import UntilConfig

SETTLED_MILLIS = 120_000  # by the service's clock after an arrival: a record that is not readable by then does not come any more


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
        settled = row.was_open and row.read_to >= self.millis + SETTLED_MILLIS
        return planner.caught_up(view, row, self.millis) and (row.is_cut or settled)

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
