"""The end of a driver whose batch does not end: where everything stands, a note for the next driver, the last words, the exit.

All of it takes less than `batch_watch.GRACE_SECONDS`, whatever hangs: each call that may hang has a thread of its own.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from sluice_consumer.batches.isolating import Isolator
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.config import BatchConfig
from sluice_consumer.process import stacks
from sluice_consumer.process.batch_watch import BatchLimits, WatchPorts
from sluice_consumer.process.ending import Ending, report
from sluice_consumer.spark import threads
from sluice_consumer.spark.engine import SparkEngine
from sluice_consumer.spark.status import SparkStatus
from sluice_consumer.spark.threads import JavaThread

log = logging.getLogger(__name__)
ANSWER_SECONDS = 5.0  # for the JVMs and the checkpoint table
CANCEL_SECONDS = 1.0
NAMED = 3  # threads that the last words name


def limits(batch: BatchConfig) -> BatchLimits | None:
    """What the configuration sets; None: a batch may take as long as it likes."""
    if batch.max_seconds is None:
        return None
    return BatchLimits(batch.max_seconds, batch.max_seconds_moving or 4 * batch.max_seconds)


def ports(engine: SparkEngine, isolator: Isolator | None, warn: Callable[[str], None]) -> WatchPorts:
    """What a watch needs of a driver."""
    status = SparkStatus(engine.spark)

    def slow(plan: BatchPlan, seconds: float) -> None:
        warn(f"BatchSlow: batch {plan.number} has taken {seconds:.0f} s, longer than batch.maxSeconds; its records still move")

    return WatchPorts(called=lambda: engine.called, progress=status.moved, warn=slow, end=OverdueBatch(engine.spark, isolator).end)


@dataclass(frozen=True)
class OverdueBatch:
    """Ends this process. `leave` is replaced in tests."""

    spark: SparkSession
    isolator: Isolator | None
    leave: Callable[[int], Any] = field(default=os._exit)

    def end(self, plan: BatchPlan, seconds: float) -> None:
        """Says where the batch hangs, notes it, cancels its jobs and ends the driver. Its lease is not released."""
        frames, java = stacks.main_stack(), list[JavaThread]()
        place = stacks.place(frames)
        log.error("batch %d has not ended for %.0f s; Python's threads:\n%s", plan.number, seconds, stacks.python_stacks())
        looking = _aside(lambda: java.extend(threads.working(self.spark)))
        message = f"batch {plan.number} of {len(plan.rows)} shards has not ended after {seconds:.0f} s (batch.maxSeconds): process stands at {place}"
        told = f"{message}\n{''.join(traceback.format_list(frames))}BatchOverdue: process stands at {place}"
        noting = _aside(lambda: self._note(plan, place, told))
        looking.join(ANSWER_SECONDS)
        noting.join(ANSWER_SECONDS)
        if java:
            log.error("tasks of it, and calls into the JVM:\n%s", "\n".join(map(str, java)))
        _aside(self.spark.sparkContext.cancelAllJobs).join(CANCEL_SECONDS)
        report(Ending(1, "BatchOverdue", "; ".join([message, *(thread.place for thread in java[:NAMED])]) + f". {self._next(plan)}"))
        sys.stdout.flush()
        self.leave(1)

    def _note(self, plan: BatchPlan, place: str, told: str) -> None:
        if self.isolator is not None:
            self.isolator.overdue(plan.number, f"BatchOverdue at {place}", told)

    def _next(self, plan: BatchPlan) -> str:
        counted = "; it counts as a failure of the batch (onError)" if self.isolator else ""
        return f"The driver ends{counted}; the next one is given batch {plan.number} again, with the same content"


def _aside(work: Callable[[], object]) -> threading.Thread:
    """Does something in a thread of its own that nobody has to wait for."""

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the driver ends either way
            log.warning("while a driver ended: %s", error)

    thread = threading.Thread(target=run, name="overdue", daemon=True)
    thread.start()
    return thread
