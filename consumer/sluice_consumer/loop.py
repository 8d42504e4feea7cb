"""The driver's batch loop: when to run a batch, when to only look, when to stop.

What a batch is, is decided in `planner`; how it becomes true, in `life`. This is the rhythm.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from sluice_checkpoints.model import ShardRow
from sluice_checkpoints.position import END
from sluice_consumer import planner
from sluice_consumer.life import Committed, Consumer, Engine
from sluice_consumer.planner import BatchPlan

log = logging.getLogger(__name__)
AUDIT_SECONDS = 120.0  # KCL's shard sync interval; children are known from their parents without it
PROBE_SECONDS = 1.0
STALE_MILLIS = 3_600_000  # an idle shard's readTo may not grow older than this (docs/protocol.md, "Batches")


class Prober(Protocol):
    """Looks at one shard."""

    def ask(self) -> bool:
        """Whether anything is new."""
        ...


@dataclass(frozen=True)
class Rhythm:
    """When the loop does what.

    Attributes:
        interval: seconds from trigger to trigger.
        until: stop when every shard stands at END, or all that had arrived by then was processed; the service's time in epoch milliseconds.
            None: never. What arrives later does not keep a backfill from ending.
        watch: makes a prober of a shard's row, after the committed batch.
        told: hears of every committed batch and how long it took, in seconds; and of None when the consumer is idle.
        rest: called once a second while it is idle.
    """

    interval: float
    until: int | None
    watch: Callable[[ShardRow], Prober]
    told: Callable[[Committed | None, float], None]
    rest: Callable[[], None]


class Loop:
    """Runs batches until it is told to drain."""

    def __init__(self, consumer: Consumer, engine: Engine, rhythm: Rhythm, drain: threading.Event) -> None:
        self._consumer, self._engine, self._rhythm, self._drain = consumer, engine, rhythm, drain
        self._audited = time.monotonic()

    def run(self) -> None:
        """Returns when drained, or when all is done that `until` asks for. Raises what ends a life."""
        while not self._drain.is_set():
            started = time.monotonic()
            self._audit()
            plan = self._consumer.plan()
            if self._done(plan):
                return
            if self._at_tip(plan) and self._rhythm.until is None:
                self._rhythm.told(None, 0.0)
                self._idle(plan)
            self._drain.wait(max(0.0, started + self._rhythm.interval - time.monotonic()))

    def _done(self, plan: BatchPlan | None) -> bool:
        """Asked after planning, for that is when children of shards that ended get their rows."""
        goal, view = self._rhythm.until, self._consumer.view
        return goal is not None and (plan is None or all(planner.there(view, row, goal) for row in view.rows.values()))

    def _at_tip(self, plan: BatchPlan | None) -> bool:
        """Runs the batch, if there is one, and says whether it found nothing new."""
        if plan is None:
            return True
        started = time.monotonic()
        committed = self._consumer.run(plan, self._engine)
        self._rhythm.told(committed, time.monotonic() - started)
        ended = any(row.end == END for row in committed.rows)
        return not (committed.records or ended or plan.replay or committed.behind_millis)

    def _audit(self) -> None:
        if time.monotonic() - self._audited > AUDIT_SECONDS:
            self._consumer.audit()
            self._audited = time.monotonic()

    def _idle(self, plan: BatchPlan | None) -> None:
        """Probes every shard once a second until one has news; no batch and no write until then."""
        rows = plan.rows if plan else ()
        probers = [self._rhythm.watch(self._consumer.view.rows[row.id]) for row in rows]
        with ThreadPoolExecutor(max(1, min(32, len(probers))), thread_name_prefix="probe") as threads:
            while not self._drain.wait(PROBE_SECONDS):
                self._rhythm.rest()
                if any(threads.map(lambda prober: prober.ask(), probers)) or self._stale(rows):
                    return
                before = set(self._consumer.view.rows)
                self._audit()
                if set(self._consumer.view.rows) != before:
                    return

    def _stale(self, rows: tuple[ShardRow, ...]) -> bool:
        oldest = min((self._consumer.view.rows[row.id].read_to for row in rows), default=0)
        return 0 < oldest < time.time() * 1000 - STALE_MILLIS
