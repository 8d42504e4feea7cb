"""A batch that does not end, in a process that is somebody else's (`embedded`): nothing may end that process.

What can be done, each step if the previous one has not helped. First the batch's Spark jobs are cancelled. Then `BatchInterrupt` is raised in the
thread that runs `process`, once a second until it has left, and becomes `BatchOverdue`. Finally the lease is given up, so that another run may take
the consumer over. Code that blocks in a library without Spark (a socket without a timeout) continues until it returns; then the run raises.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from sluice_consumer import logs
from sluice_consumer.driver_report import DriverWarning
from sluice_consumer.exits import stacks
from sluice_consumer.poison.isolator import BatchInterrupt, BatchOverdue, Isolator
from sluice_consumer.spark.engine import SparkEngine
from sluice_consumer.watchdog import overdue
from sluice_consumer.watchdog.batch_watch import GRACE_SECONDS, WatchedBatch, WatchPorts

log = logging.getLogger(__name__)
CANCEL_SECONDS = 3.0  # for a cancelled job to raise in `process`
NEXT = (
    "The Spark jobs of the batch are cancelled, then an interrupt is raised in the thread that runs `process`; the batch comes again in the next run"
)


@dataclass(frozen=True)
class RunControls:
    """What a run can do about itself.

    Attributes:
        cancel: cancels its Spark jobs. stop: lets its loop end. give_up: ends its heartbeats.
        draining: since when it is to drain, in monotonic seconds; None: it is not.
        drain_seconds: how long a drain may take.
    """

    cancel: Callable[[], None]
    stop: Callable[[], None]
    give_up: Callable[[], None]
    draining: Callable[[], bool]
    drain_seconds: float


class RunWatch:
    """Ends the batch of one run, whose thread makes it.

    Attributes:
        error: what the run is to raise; None: no batch was overdue.
    """

    def __init__(self, controls: RunControls, clock: Callable[[], float] = time.monotonic) -> None:
        self._controls, self._clock, self._thread = controls, clock, threading.get_ident()
        self._isolator: Isolator | None = None
        self._told_to_drain: float | None = None
        self._began = 0.0
        self._raised = self._given_up = False
        self.error: BatchOverdue | None = None

    def ports(self, engine: SparkEngine, isolator: Isolator | None, warn: Callable[[DriverWarning], None]) -> WatchPorts:
        """What a watch needs of this run."""
        self._isolator = isolator
        ports = replace(overdue.ports(engine, isolator, warn), end=self.end, late=self.late, error=lambda: self.error)
        return replace(ports, arm=lambda _seconds: None, disarm=lambda: None)  # that timer ends the process

    def late(self) -> bool:
        """Whether a drain has had its time."""
        if self._told_to_drain is None and self._controls.draining():
            self._told_to_drain = self._clock()
        return self._told_to_drain is not None and self._clock() - self._told_to_drain >= self._controls.drain_seconds

    def end(self, batch: WatchedBatch) -> None:
        """The next step. Called once a second for as long as the batch runs."""
        if self.error is None:
            self._begin(batch)
        waited = self._clock() - self._began
        overdue.aside(self._controls.cancel).join(overdue.CANCEL_SECONDS)
        if waited >= CANCEL_SECONDS and (not self._raised or stacks.in_process(self._thread)):
            self._raised = True
            raise_in(self._thread, BatchInterrupt)
        if waited >= CANCEL_SECONDS + GRACE_SECONDS and not self._given_up:
            self._given_up = True
            logs.warn(
                f"BatchOverdue: batch {batch.plan.number} still runs although it was stopped; the lease is given up, and another run may take it"
            )
            self._controls.give_up()

    def _begin(self, batch: WatchedBatch) -> None:
        frames = stacks.main_stack(self._thread)
        message = overdue.words(batch, frames)
        self._began, self.error = self._clock(), BatchOverdue(f"{message}. It comes again in the next run")
        log.error("%s; Python's threads:\n%s", message, stacks.python_stacks())
        logs.warn(f"BatchOverdue: {message}. {NEXT}")
        self._controls.stop()
        overdue.aside(lambda: overdue.note(self._isolator, batch, frames)).join(overdue.ANSWER_SECONDS)


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raises an error in another thread, as soon as that thread runs a line of Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
