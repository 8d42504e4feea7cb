"""Answers Spark's questions about offsets: which batch comes next, what is in it, and that it is done (docs/structured-streaming.md).

Spark asks for what comes after batch N only when its own commit log holds N; then N is closed and committed here. Between the two a crash leaves
either a batch that Spark repeats (its ranges are in the rows), or one that only the table has to catch up with. May not start Spark or read a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol.batch_writes import reader_key
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import TaskAttempt
from sluice_consumer.batches import planner
from sluice_consumer.batches.consumer import Committed, Consumer, Engine
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.streaming import offsets
from sluice_consumer.streaming.offsets import Offset

STORED = "stored.0"  # a reader that is not a task: whoever said that the sink holds the batch


@dataclass(frozen=True)
class Surroundings:
    """What the planner asks of its surroundings, and reports to them.

    Attributes:
        alive: raises when the lease is lost.
        probe: which of these shards are idle, and which are not; of one that it leaves out nothing is known.
        audit_due: whether it is time to list the shards again.
        engine: its `run` returns if all of Spark's jobs of the batch succeeded, and raises otherwise; it reads nothing.
        on_progress: called with every committed batch, and with None when there is nothing to read.
        stands: what Spark's commit log holds of the query that asks; None: nothing. Called when Spark does not say it, while it waits for the answer.
        fold: folds rows of shards that are over, right after an audit (`batches.folding.Folder`).
    """

    alive: Callable[[], None]
    probe: Callable[[Sequence[ShardRow]], Mapping[str, bool]]
    audit_due: Callable[[], bool]
    engine: Engine
    on_progress: Callable[[Committed | None], None]
    stands: Callable[[], Offset | None]
    fold: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class DoneBySpark:
    """An `Engine` for a batch that Spark has run: returns if `engine` does, and the query has read all that an earlier epoch had bound.

    Attributes:
        read: the rows of a batch as they are now, with everybody who has read them.
        done: what the checkpoint directory holds of the batch.
    """

    engine: Engine
    read: Callable[[BatchPlan], Sequence[ShardRow]]
    done: Offset

    def run(self, plan: BatchPlan) -> None:
        """See `Engine`. What this epoch has bound was read by that; a replay has to be looked at, once no job of it can read any more."""
        self.engine.run(plan)
        if plan.replay:
            offsets.check_read(self.read(plan), self.done)


class StreamPlanner:
    """One query's view of one epoch. To be called by one thread at a time.

    `accepted`: the number of a batch that is committed even if nobody has read it, for a person said so (`acceptLossOfBatch`).

    Attributes:
        open: the batch given to Spark last and that is not committed, if any.
        handed: number of the batch whose tasks Spark was given last; 0: none in this epoch.
        end: what counts, from `until_now` on.
    """

    def __init__(self, consumer: Consumer, around: Surroundings, accepted: int | None = None) -> None:
        assert consumer.row is not None  # noqa: S101 - it began
        self._consumer, self._around, self._row, self._accepted = consumer, around, consumer.row, accepted
        self._begun = False
        self.end: RunEnd | None = None
        self._answered: tuple[Offset, Offset] | None = None
        self.open: BatchPlan | None = None
        self.handed = 0

    def initial(self) -> Offset:
        """Where a query begins that has no checkpoint directory yet."""
        return Offset(self._row.consumer_id, self._consumer.view.committed, first=True)

    def until_now(self) -> None:
        """From now on only what had arrived by now counts (`Trigger.AvailableNow`)."""
        self._consumer.audit()
        self.end = RunEnd.tip(self._consumer.listed_millis)

    def finish(self, done: Offset) -> None:
        """Spark has stored the batch that ends here: close and commit it, unless it is committed.

        Raises:
            Refused: see `offsets.check` and `offsets.check_read`. JobsNotDone, LostRace, Fenced: see `Consumer.run`.
        """
        self._around.alive()
        view = self._consumer.view
        offsets.check(view, self._row, done)
        if done.batch == view.number:
            engine = self._around.engine
            checked = engine if done.batch == self._accepted else DoneBySpark(engine, self._bound, done)
            committed = self._consumer.run(self._given(), checked)
            self.open = None
            self._around.on_progress(committed)

    def _given(self) -> BatchPlan:
        """The batch that is open, as Spark was given it in this epoch, or as an earlier one began it."""
        view = self._consumer.view
        return self.open if self.open is not None and self.open.number == view.number else planner.next_batch(view)

    def stored(self) -> None:
        """The sink holds the batch that Spark was given last: this counts as having read it, in every later epoch too.

        Raises:
            Fenced, LostRace: see `CheckpointStore.register`.
        """
        plan = planner.next_batch(self._consumer.view)
        if not (plan.replay and plan.number == self.handed):
            return
        epoch = self._consumer.epoch
        for row in self._bound(plan):
            self._consumer.store.register(epoch, plan.number, row.id, TaskAttempt(reader_key(epoch.generation, STORED), 1))

    def _bound(self, plan: BatchPlan) -> tuple[ShardRow, ...]:
        return tuple(row for row in self._consumer.store.read(row.id for row in plan.rows).values() if row.batch == plan.number)

    def latest(self, start: Offset | None) -> Offset:
        """The end of the batch after `start`; `start` itself while there is nothing to read. None: Spark names no start, and is asked for it.

        Raises:
            Refused: Spark lacks batches that can no longer be read again, or does not report its position. Else what ends an epoch.
        """
        self._around.alive()
        start = start or self._around.stands() or self.initial()
        end = self._after(start)
        self._answered = start, end
        return end

    def _after(self, start: Offset) -> Offset:
        self.finish(start)
        missed = offsets.seen_less(self._consumer.view, start)
        if missed is not None:
            return self._offset(missed)
        self.open = self.open or self._next()
        if self.open is None:
            self._around.on_progress(None)
            return start
        return self._offset(self.open)

    def _offset(self, plan: BatchPlan) -> Offset:
        return Offset(self._row.consumer_id, plan.number, generation=self._consumer.epoch.generation)

    def partitions(self, start: Offset, end: Offset) -> BatchPlan | None:
        """What the batch that ends at `end` contains; None: nothing.

        Raises:
            Refused: it was committed, and a later one was begun since; or `latest` was answered for another start; or the positions were moved after
                `start`, though Spark has logged an `end` behind that.
        """
        self._around.alive()
        offsets.check(self._consumer.view, self._row, end)
        if end.first or start == end:
            return None
        if self._answered is not None and end == self._answered[1] and start != (asked := self._answered[0]):
            raise Refused(f"batch {end.batch} was given to a query at batch {asked.batch}, and one at batch {start.batch} reads it")
        offsets.check(self._consumer.view, self._row, start)  # Spark repeats a batch behind a reset that no task had bound
        plan = self._named(end.batch)
        self.handed = end.batch
        return plan

    def _named(self, number: int) -> BatchPlan:
        if self.open is None and number == self._consumer.view.number:  # Spark repeats what an earlier epoch was asked for
            self.open = self._consumer.plan()
        if self.open is not None and self.open.number == number:
            return self.open
        return offsets.of_committed(self._consumer.view, number)

    def _next(self) -> BatchPlan | None:
        self._audit()
        consumer = self._consumer
        if self.end is not None:
            return consumer.plan(self.end.past(consumer.view))
        left = planner.may_be_left_out(consumer.view, consumer.listed_millis)
        probed = self._around.probe((*left, *self._others(left)))
        plan = consumer.plan(planner.at_the_tip(left, probed))
        return plan if plan is not None and self._due(plan, probed) else None

    def _audit(self) -> None:
        """Lists the shards if it is time to, and folds what that says is over; first what the listing said with which the epoch began."""
        if due := self._around.audit_due():
            self._consumer.audit()
        if due or not self._begun:
            self._begun = True
            self._around.fold()

    def _others(self, left: Sequence[ShardRow]) -> list[ShardRow]:
        """Shards that take part, and of which only a probe says whether they have more. They are probed with `left`, so that each has its turn."""
        plan, known = planner.next_batch(self._consumer.view), {row.id for row in left}
        if plan.replay or any(row.behind for row in plan.rows):
            return []
        return [row for row in plan.rows if row.id not in known]

    def _due(self, plan: BatchPlan, probed: Mapping[str, bool]) -> bool:
        return plan.replay or planner.waits_for_number(self._consumer.view) or self._has_news(plan.rows, probed)

    def _has_news(self, rows: Sequence[ShardRow], probed: Mapping[str, bool]) -> bool:
        """Whether one of the shards has more, or is to take part once an hour."""
        now = self._consumer.listed_millis
        due = planner.refreshed(self._consumer.view, now)
        behind = any(row.behind or (row.read_to and (row.id in due or planner.is_stale(row, now))) for row in rows)
        if behind or any(probed.get(row.id) is False for row in rows):
            return True
        new = [row for row in rows if row.id not in probed]  # such as children that the plan made known
        seen = self._around.probe(new) if new else {}
        return not all(seen.get(row.id) for row in new)  # one that has no turn takes part
