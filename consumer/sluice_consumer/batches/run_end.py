"""Where a run ends: at the tip of its start, or at a timestamp (docs/protocol.md, "Where a run ends"). Pure: rows in, answers out."""

from __future__ import annotations

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
        return frozenset(row.id for row in view.opened if self.cuts and planner.caught_up(view, row, self.millis))

    def reads_up_to(self, now_millis: int) -> int | None:
        """What every shard has to be read up to before it may be left out as idle; None: nothing more than usual.

        Before a timestamp is settled, idle shards wait for it as for anything else.
        """
        return None if self.cuts and now_millis < self.millis + SETTLED_MILLIS else self.millis

    def is_reached(self, view: TableView) -> bool:
        """Whether the run ends here. To be asked after planning, for that is when children of shards that ended get their rows."""
        if self.cuts:
            return not planner.next_batch(view, self.past(view)).rows and not planner.waits_for_number(view)
        return not planner.next_batch(view).rows or not self.unread(view)

    def unread(self, view: TableView) -> list[ShardRow]:
        """Rows of shards that were not read up to there."""
        return [row for row in view.live.values() if not planner.caught_up(view, row, self.millis)]
