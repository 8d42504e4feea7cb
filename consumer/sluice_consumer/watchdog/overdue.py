"""The end of a driver whose batch does not end: what each thread and task is doing, a note for the next driver, the exit message, the exit.

All of it takes less than `batch_watch.GRACE_SECONDS`, whatever hangs: each call that may hang has a thread of its own.
"""

from __future__ import annotations

import logging
import math
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from sluice_checkpoints.names import counted
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.config import MAX_SECONDS, MAX_SECONDS_MOVING, BatchConfig
from sluice_consumer.driver_report import DriverWarning, WarningReason
from sluice_consumer.exits import ending, stacks
from sluice_consumer.exits.ending import Ending, report
from sluice_consumer.poison.isolator import Isolator
from sluice_consumer.spark import threads
from sluice_consumer.spark.engine import SparkEngine
from sluice_consumer.spark.failures import judged
from sluice_consumer.spark.threads import JavaThread
from sluice_consumer.watchdog.batch_watch import BatchLimits, BatchPhase, Progress, WatchedBatch, WatchPorts

log = logging.getLogger(__name__)
ANSWER_SECONDS = 5.0  # for the JVMs and the checkpoint table
CANCEL_SECONDS = 1.0
NAMED = 3  # threads that the exit message names
SPARK_HEARTBEAT = 10.0  # seconds, where a session says nothing


def limits(batch: BatchConfig, heartbeat: float = SPARK_HEARTBEAT) -> BatchLimits:
    """What the configuration sets, in a session whose executors send their figures every `heartbeat` seconds (`status.heartbeat`).

    Without `maxSeconds` it is an hour, and a day for a batch that moves. With 0, a batch may take as long as it likes.
    """
    window = BatchLimits.window_of(heartbeat)
    if batch.max_seconds == 0:
        return BatchLimits(math.inf, math.inf, window)
    if batch.max_seconds is None:
        return BatchLimits(MAX_SECONDS, MAX_SECONDS_MOVING, window)
    return BatchLimits(batch.max_seconds, 4 * batch.max_seconds, window)


def ports(engine: SparkEngine, isolator: Isolator | None, warn: Callable[[DriverWarning], None]) -> WatchPorts:
    """What a watch needs of a driver."""

    def moved() -> Progress:
        return engine.moved()

    def end(batch: WatchedBatch) -> None:
        OverdueBatch(engine.spark, isolator).end(batch)

    def slow(batch: WatchedBatch) -> None:
        seconds = f"{batch.seconds:.0f} s, longer than batch.maxSeconds"
        doing = "Spark still plans it" if batch.planning else "its records still move"
        warn(DriverWarning(WarningReason.BATCH_SLOW, f"batch {batch.plan.number} has taken {seconds}; {doing}"))

    return WatchPorts(called=lambda: engine.called, progress=moved, warn=slow, end=end)


def words(batch: WatchedBatch, frames: Sequence[traceback.FrameSummary]) -> str:
    """The message for people about a batch that does not end."""
    why = "the time of a drain is over" if batch.drained else "batch.maxSeconds"
    where = stacks.place(frames)
    doing = {
        BatchPhase.BEGINNING: "its ranges are being read",
        BatchPhase.PROCESS: "Spark plans it, and process was not called" if batch.planning else f"process is at {where}",
        BatchPhase.FAILED: f"process raised {type(batch.error).__name__}: {batch.error}; what follows that has no end",
        BatchPhase.CLOSING: "process has returned, and the batch is being committed",
    }[batch.phase]
    return f"batch {batch.plan.number} of {counted(len(batch.plan.rows), 'shard')} has not ended after {batch.seconds:.0f} s ({why}): {doing}"


def note(isolator: Isolator | None, batch: WatchedBatch, frames: Sequence[traceback.FrameSummary]) -> None:
    """Leaves the failure for the next driver's search: that `process` does not end, or what it raised. Else it is not a failure of `process`."""
    if isolator is None or batch.drained or batch.planning:
        return
    number, place = batch.plan.number, stacks.place(frames)
    if batch.phase is BatchPhase.PROCESS:
        trace = "".join(traceback.format_list(frames))
        isolator.overdue(number, f"BatchOverdue at {place}", f"{words(batch, frames)}\n{trace}BatchOverdue: process is at {place}")
    failure = judged(batch.error) if batch.error is not None else None
    if failure is not None and not failure.transient:
        isolator.overdue(number, failure.error, failure.trace)


@dataclass(frozen=True)
class OverdueBatch:
    """Ends this process. `leave` is replaced in tests."""

    spark: SparkSession
    isolator: Isolator | None
    leave: Callable[[int], Any] = field(default=ending.leave)

    def end(self, batch: WatchedBatch) -> None:
        """Says where the batch hangs, notes it, cancels its jobs and ends the driver. Its lease is not released."""
        frames, java = stacks.main_stack(), list[JavaThread]()
        message = words(batch, frames)
        log.error("%s; Python's threads:\n%s", message, stacks.python_stacks())
        looking = aside(lambda: java.extend(threads.working(self.spark)))
        noting = aside(lambda: note(self.isolator, batch, frames))
        looking.join(ANSWER_SECONDS)
        noting.join(ANSWER_SECONDS)
        if java:
            log.error("its tasks, and calls into the JVM:\n%s", "\n".join(map(str, java)))
        aside(self.spark.sparkContext.cancelAllJobs).join(CANCEL_SECONDS)
        report(Ending(1, "BatchOverdue", "; ".join([message, *(thread.place for thread in java[:NAMED])]) + f". {self._next(batch.plan)}"))
        self.leave(1)

    def _next(self, plan: BatchPlan) -> str:
        counted = "; it counts as a failure of the batch (onError)" if self.isolator else ""
        return f"The driver ends{counted}; the next one is given batch {plan.number} again, with the same content"


def aside(work: Callable[[], object]) -> threading.Thread:
    """Does something in a thread of its own that nobody has to wait for."""

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the driver ends either way
            log.warning("while a driver ended: %s", error)

    thread = threading.Thread(target=run, name="overdue", daemon=True)
    thread.start()
    return thread
