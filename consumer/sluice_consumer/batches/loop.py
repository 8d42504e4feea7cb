"""The driver's batch loop: when to run a batch, when to probe only, when to stop.

`planner` decides what a batch is, and `consumer` runs it. This module decides when.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from sluice_checkpoints.position import END
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches import planner
from sluice_consumer.batches.consumer import Committed, Consumer, Engine
from sluice_consumer.batches.isolating import Isolator
from sluice_consumer.batches.planner import BatchPlan

log = logging.getLogger(__name__)
AUDIT_SECONDS = 120.0  # KCL's shard sync interval; children are known from their parents without it
PROBE_SECONDS = 1.0


@dataclass(frozen=True)
class LoopTimings:
    """When the loop does what.

    Attributes:
        interval: seconds from trigger to trigger.
        until: stop when every shard is at END, or all that had arrived by then was processed; the service's time in epoch milliseconds.
            None: never. What arrives later does not keep a backfill from ending.
        news: whether any of these shards has something to read after the position in its row (`shards.new_records.NewRecords`).
        on_progress: called after every commit with the batch and its duration in seconds; with None when the consumer becomes idle.
        rest: called once a second while it is idle.
        clock: monotonic, in seconds.
        watched: holds for a batch from before it is run until it is committed, or what follows its failure is ready.
    """

    interval: float
    until: int | None
    news: Callable[[Sequence[ShardRow]], bool]
    on_progress: Callable[[Committed | None, float], None]
    rest: Callable[[], None]
    clock: Callable[[], float] = time.monotonic
    watched: Callable[[BatchPlan], AbstractContextManager[None]] = lambda _plan: nullcontext()


class Loop:
    """Runs batches until it has to drain."""

    def __init__(self, consumer: Consumer, engine: Engine, rhythm: LoopTimings, drain: threading.Event, isolator: Isolator | None = None) -> None:
        """`isolator`: deals with batches that fail; without one a failure ends the epoch."""
        self._consumer, self._engine, self._rhythm, self._drain, self._isolator = consumer, engine, rhythm, drain, isolator
        self._clock = rhythm.clock
        self._audited = self._clock()

    def run(self) -> None:
        """Returns when drained, or when all is done that `until` asks for. Raises what ends an epoch."""
        while not self._drain.is_set():
            started = self._clock()
            self._audit()
            plan = self._consumer.plan()
            if self._done(plan):
                return
            if self._at_tip(plan) and self._rhythm.until is None:
                self._rhythm.on_progress(None, 0.0)
                self._idle()
            if not self._isolating:
                self._drain.wait(max(0.0, started + self._rhythm.interval - self._clock()))

    def _done(self, plan: BatchPlan | None) -> bool:
        """Asked after planning, for that is when children of shards that ended get their rows."""
        goal, view = self._rhythm.until, self._consumer.view
        return goal is not None and (plan is None or all(planner.caught_up(view, row, goal) for row in view.rows.values()))

    def _at_tip(self, plan: BatchPlan | None) -> bool:
        """Runs the batch, if there is one, and says whether it found nothing new, and the next one needs news to find more."""
        if plan is None:
            return True
        started = self._clock()
        with self._rhythm.watched(plan):
            committed = self._ran(plan)
        if committed is None:
            return False
        self._rhythm.on_progress(committed, self._clock() - started)
        ended = any(row.end == END for row in committed.rows)
        more = committed.records or ended or plan.replay or committed.behind_millis or self._isolating
        return not more and planner.can_idle(self._consumer.view)

    @property
    def _isolating(self) -> bool:
        return self._isolator is not None and self._isolator.search.active

    def _ran(self, plan: BatchPlan) -> Committed | None:
        """The batch as committed; None: it failed, and what follows is ready."""
        if self._isolator is None:
            return self._consumer.run(plan, self._engine)
        if self._isolator.resumes(plan):
            return None
        plan = self._isolator.restricted(plan)
        try:
            committed = self._consumer.run(plan, self._engine)
        except Exception as error:
            if self._consumer.view.committed >= plan.number:
                raise  # of what comes after the commit: the batch is not to be made smaller
            self._isolator.failed(plan, error)
            return None
        if not plan.is_empty_replay:
            self._isolator.passed(committed)
        return committed

    def _audit(self) -> bool:
        """Lists the shards if it is time to, and says whether it did."""
        due = self._clock() - self._audited > AUDIT_SECONDS
        if due:
            self._consumer.audit()
            self._audited = self._clock()
        return due

    def _idle(self) -> None:
        """Probes every shard of the next batch once a second until one has news; no batch and no write until then.

        It ends, too, when an audit changes what the next batch reads.
        """
        rows = planner.next_batch(self._consumer.view).rows
        while not self._drain.wait(PROBE_SECONDS):
            self._rhythm.rest()
            if self._rhythm.news(rows):
                return
            if self._audit() and not self._unchanged(rows):
                return

    def _unchanged(self, rows: tuple[ShardRow, ...]) -> bool:
        view = self._consumer.view
        return planner.can_idle(view) and planner.next_batch(view).rows == rows
