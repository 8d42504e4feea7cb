"""The driver's batch loop: when to run a batch, when to probe shards only, when to stop.

`planner` decides what a batch is, and `consumer` runs it. This module decides when.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches import planner
from sluice_consumer.batches.consumer import Committed, Consumer, Engine
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.shards.probes import PROBE_SECONDS

REST_SECONDS = 0.9  # from one `rest` to the next, at least
AUDIT_SECONDS = 120.0  # KCL's shard sync interval; children are known from their parents without it


@dataclass(frozen=True)
class LoopTimings:
    """When the loop does what.

    Attributes:
        interval: seconds from a batch of all shards to the next; shards that are full are read on in between.
        until: where to stop; None: nowhere.
        probe: which of these shards are idle, and which are not; of one that it leaves out nothing is known (`shards.probes.ProbeScheduler`).
        on_progress: called after every commit with the batch and its duration in seconds; with None when the consumer becomes idle.
        rest: called once a second while it is idle.
        clock: monotonic, in seconds.
        refreshing: how idle shards take part in a batch once an hour.
        pause: seconds until a shard may be probed again, while there is nothing to read.
        fold: folds rows of shards that are over. Called right after an audit, and before the first batch (`folding.Folder`).
        watched: holds for a batch from before it is run until it is committed, or what follows its failure is ready.
    """

    interval: float
    until: RunEnd | None
    probe: Callable[[Sequence[ShardRow]], Mapping[str, bool]]
    on_progress: Callable[[Committed | None, float], None]
    rest: Callable[[], None]
    clock: Callable[[], float] = time.monotonic
    refreshing: planner.Refreshing = planner.REFRESHING
    pause: Callable[[], float] = lambda: PROBE_SECONDS
    fold: Callable[[], None] = lambda: None
    watched: Callable[[BatchPlan], AbstractContextManager[None]] = lambda _plan: nullcontext()


class FailedBatches(Protocol):
    """Deals with batches that fail. `poison.isolator` is the one that drivers have; the loop knows these calls, and none of poison."""

    @property
    def searching(self) -> bool:
        """Whether the next batch is to be small, at once, and of these shards: no shard is left out as idle, and no interval waited for."""
        ...

    def restricted(self, plan: BatchPlan) -> BatchPlan:
        """The part of a plan that is to be run. A batch that was begun stays as it is."""
        ...

    def resumes(self, plan: BatchPlan) -> bool:
        """Makes ready what follows a failure of this batch in the driver before. False: there was none, so run the batch.

        Raises:
            See `failed`.
        """
        ...

    def failed(self, plan: BatchPlan, error: Exception) -> None:
        """Makes ready what follows a failure: the next plan is of it.

        Raises:
            `error`, or what else ends the epoch.
        """
        ...

    def passed(self, committed: Committed) -> None:
        """A batch was committed that `process` has returned from."""
        ...


class Loop:
    """Runs batches until it has to drain."""

    def __init__(
        self, consumer: Consumer, engine: Engine, timings: LoopTimings, drain: threading.Event, isolator: FailedBatches | None = None
    ) -> None:
        """`isolator`: deals with batches that fail; without one a failure ends the epoch."""
        self._consumer, self._engine, self._timings, self._drain, self._isolator = consumer, engine, timings, drain, isolator
        self._clock = timings.clock
        self._audited = self._rested = self._due = self._clock()

    def run(self) -> None:
        """Returns when drained, or when all is done that `until` asks for. Raises what ends an epoch."""
        idles, full = False, frozenset[str]()
        self._timings.fold()  # the epoch began with an audit, and may end before the next one
        while not self._drain.is_set():
            started = self._clock()
            self._audit()
            only = full if started < self._due and not self._isolating else frozenset[str]()
            plan, full = self._consumer.plan(self._left_out(only)), frozenset()
            if self._done():
                return
            if plan is None:
                idles = self._rests(idles)
                continue
            idles = False
            if not (only or plan.replay or self._isolating):
                self._due = started + self._timings.interval
            committed = self._runs(plan)
            full = committed.full if committed else frozenset()
            if committed and not (full or self._isolating or self._done()):
                self._drain.wait(max(0.0, self._due - self._clock()))

    def _left_out(self, only: frozenset[str]) -> frozenset[str]:
        """What the next batch leaves out: shards that are past the end of the run, and idle ones; if `only` is not empty, all but those and new ones.

        Shards that had no turn to be probed are at the tip, as their last range said. While a record is searched for, none counts as idle, for the
        search needs other shards beside.
        """
        consumer, timings, now = self._consumer, self._timings, self._consumer.listed_millis
        past = timings.until.past(consumer.view) if timings.until else frozenset()
        if only:
            return frozenset(name for name, row in consumer.view.live.items() if not row.unread) - only | past
        if self._isolating or (timings.until and timings.until.reads_all(now)):
            return past
        rows = planner.may_be_left_out(consumer.view, now, timings.refreshing)
        rows = tuple(row for row in rows if row.id not in past)
        return planner.at_the_tip(rows, timings.probe(rows)) | past

    def _done(self) -> bool:
        return self._timings.until is not None and self._timings.until.is_reached(self._consumer.view)

    def _rests(self, idles: bool) -> bool:  # noqa: FBT001 - whether it did before
        """No batch and no write until a shard that may be left out may be probed again: a second, unless the user gave probes a larger share."""
        if not idles:
            self._timings.on_progress(None, 0.0)
            self._rested = self._clock()
        elif self._clock() - self._rested >= REST_SECONDS:
            self._timings.rest()
            self._rested = self._clock()
        self._drain.wait(self._timings.pause())
        return True

    def _runs(self, plan: BatchPlan) -> Committed | None:
        """The batch as committed, and reported. None: it failed, and what follows has had its own pause."""
        started = self._clock()
        with self._timings.watched(plan):
            committed = self._ran(plan)
        if committed is not None:
            self._timings.on_progress(committed, self._clock() - started)
        return committed

    @property
    def _isolating(self) -> bool:
        return self._isolator is not None and self._isolator.searching

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

    def _audit(self) -> None:
        if self._clock() - self._audited > AUDIT_SECONDS:
            self._consumer.audit()
            self._timings.fold()
            self._audited = self._clock()
