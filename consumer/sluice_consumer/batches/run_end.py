"""Where a run ends: at the tip of its start, or at a timestamp (docs/protocol.md, "Where a run ends"). Pure: rows in, answers out."""

from __future__ import annotations

from dataclasses import dataclass

from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches import planner
from sluice_consumer.batches.planner import TableView
from sluice_consumer.config import UntilConfig

SETTLED_MILLIS = 120_000  # by the service's clock after an arrival: a record that is not readable by then does not come any more
SECOND_MILLIS = 1000  # a listing says its time in whole seconds: it came before the next one


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The service's time at which a run ends: what arrived then or later is not read.

    Attributes:
        millis: that time, in epoch milliseconds.
        settled_millis: so long after it an empty shard brings no more from before it. 0 at the tip: what can be read then, counts.
    """

    millis: int
    settled_millis: int = SETTLED_MILLIS

    @staticmethod
    def of(until: UntilConfig | None, listed_millis: int) -> RunEnd | None:
        """The end of a run whose epoch listed the shards at `listed_millis`; None: it has none."""
        if until is None:
            return None
        return RunEnd.tip(listed_millis) if until.millis is None else RunEnd(until.millis)

    @staticmethod
    def tip(listed_millis: int) -> RunEnd:
        """The end of a run that reads what had arrived when the shards were listed."""
        return RunEnd(listed_millis + SECOND_MILLIS, settled_millis=0)

    def past(self, view: TableView) -> frozenset[str]:
        """Shards of which nothing more is delivered, though they are not at END: no batch has them."""
        return frozenset(row.id for row in view.opened if self._is_past(view, row))

    def _is_past(self, view: TableView, row: ShardRow) -> bool:
        """Whoever has bound the last range, it says that nothing in front of the cut is left: neither a record nor the shard's end."""
        read_past = row.was_open and row.read_to >= self.millis + self.settled_millis
        return row.batch <= view.committed and row.read_to >= self.millis and (row.is_cut or read_past)

    def reads_all(self, now_millis: int) -> bool:
        """Whether no shard is left out as idle that is not past the end. Before a timestamp is settled, they wait for it as for anything else."""
        return not self.settled_millis or now_millis >= self.millis + self.settled_millis

    def is_reached(self, view: TableView) -> bool:
        """Whether the run ends here. To be asked after planning, for that is when children of shards that ended get their rows."""
        return not planner.next_batch(view, self.past(view)).rows and not planner.waits_for_number(view)

    def unread(self, view: TableView) -> list[ShardRow]:
        """Rows of shards that were not read up to there."""
        finished = self.finished(view)
        return [row for row in view.opened if row.id not in finished]

    def finished(self, view: TableView) -> frozenset[str]:
        """Shards that are not at END, and of which this run owes nothing more: they are past the end, or wait for one that is."""
        finished, opened = self.past(view), view.opened
        while waiting := {row.id for row in opened if row.id not in finished and row.parents & finished}:
            finished |= waiting
        return finished
