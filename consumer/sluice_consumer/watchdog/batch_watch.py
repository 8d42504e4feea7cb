"""Ends an epoch whose batch does not end (docs/runbooks.md, "A batch that does not end").

`verdict` decides. `BatchWatch` asks it once a second, in a thread of its own, from before a batch is run until it is committed, or until what follows
its failure is ready. A thread that holds Python's lock holds that thread up, too: for this there is a timer outside of Python.
"""

from __future__ import annotations

import contextlib
import contextvars
import faulthandler
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from sluice_consumer.batches.consumer import Engine
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.exits.ending import OwnWord
from sluice_consumer.watchdog.armed_timer import ArmedTimer

log = logging.getLogger(__name__)
LOOK_SECONDS = 1.0
STILL_SECONDS = 10.0  # a batch moves if something of it moved so lately, or within some heartbeats
HEARTBEATS = 3  # an executor's first one comes after up to two intervals
PLANNING_SECONDS = 1800.0  # for Spark to plan a batch, where `maxSeconds` is less: a cold one takes its time
GRACE_SECONDS = 10.0  # for the driver to say where it is, and to end itself
Progress = tuple[int, ...]


class BatchVerdict(Enum):
    """What is to be done about a batch."""

    WAIT, WARN, END = "wait", "warn", "end"


class BatchPhase(Enum):
    """Where a batch is. Each phase has its own time."""

    BEGINNING, PROCESS, FAILED, CLOSING = "beginning", "process", "failed", "closing"


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What a batch may take, in seconds.

    Attributes:
        still: for a batch without progress. moving: for one that makes progress.
        window: a batch moves if something of it moved so lately.
    """

    still: float
    moving: float
    window: float = STILL_SECONDS

    @property
    def planning(self) -> float:
        """What Spark may take to plan a batch: it shows neither what moves during that time, nor whether it still answers."""
        return max(self.still, PLANNING_SECONDS)

    @staticmethod
    def window_of(heartbeat: float) -> float:
        """The window where executors send their figures every so many seconds: in between, nothing is known of a task that runs."""
        return max(STILL_SECONDS, HEARTBEATS * heartbeat)

    def verdict(self, elapsed: float, moved: float) -> BatchVerdict:
        """What a batch deserves.

        Args:
            elapsed: seconds since its phase began.
            moved: seconds since a record or a task of it moved.
        """
        if elapsed < self.still:
            return BatchVerdict.WAIT
        return BatchVerdict.END if moved >= self.window or elapsed >= self.moving else BatchVerdict.WARN

    def is_watched(self, elapsed: float) -> bool:
        """Whether it matters by now what moves."""
        return elapsed >= self.still - self.window


@dataclass(frozen=True)
class WatchedBatch:
    """A batch that is under way.

    Attributes:
        phase: where it is. seconds: for how long.
        error: what it failed by, if it did.
        drained: it is ended because the time of a drain is over.
        planning: Spark plans it, and `process` was not called.
    """

    plan: BatchPlan
    phase: BatchPhase
    seconds: float = 0.0
    error: Exception | None = None
    drained: bool = False
    planning: bool = False


@dataclass(frozen=True)
class WatchPorts:
    """What the driver brings.

    Attributes:
        called: whether `process` was called. What comes before it, Spark's planning, has a time of its own.
        progress: numbers that change when something of the batch moves; it may fail.
        warn: called once a batch. end: called when it is overdue; where it returns, it is called again a second later.
        late: whether the time of a drain is over; where another process watches that, never.
        error: what `end` has ended a batch with that did not end itself; it is not committed.
        clock: monotonic seconds.
        arm: ends the process after so many seconds, without Python. disarm: takes that back. mark: lets the supervisor know of it.
    """

    called: Callable[[], bool]
    progress: Callable[[], Progress]
    warn: Callable[[WatchedBatch], None]
    end: Callable[[WatchedBatch], None]
    late: Callable[[], bool] = lambda: False
    error: Callable[[], Exception | None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    arm: Callable[[float], None] = lambda seconds: faulthandler.dump_traceback_later(seconds, exit=True)
    disarm: Callable[[], None] = faulthandler.cancel_dump_traceback_later
    mark: Callable[[ArmedTimer | None], None] = OwnWord.mark


class BatchWatch:
    """Watches the batches of one epoch, one after the other. It is the engine that the batch loop sees."""

    def __init__(self, engine: Engine, limits: BatchLimits, ports: WatchPorts) -> None:
        self._engine, self._limits, self._ports = engine, limits, ports
        self._lock = threading.Lock()  # held while a batch is ended, so that it cannot continue
        self._over = threading.Event()
        self._batch: WatchedBatch | None = None
        self._began = self._moved = self._armed = 0.0
        self._progress: Progress = ()
        self._warned = False

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Looks once a second in here."""
        threading.Thread(target=contextvars.copy_context().run, args=(self._run,), name="batch", daemon=True).start()
        try:
            yield
        finally:
            self._over.set()

    # -- the batch loop's side -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def batch(self, plan: BatchPlan) -> Iterator[None]:
        """Watches a batch in here."""
        self._warned = False
        self._enter(WatchedBatch(plan, BatchPhase.BEGINNING))
        try:
            yield
        finally:
            self._enter(None)

    def run(self, plan: BatchPlan) -> None:
        self._enter(WatchedBatch(plan, BatchPhase.PROCESS))
        try:
            self._engine.run(plan)
            self._returned(plan)
        except Exception as error:
            self._enter(WatchedBatch(plan, BatchPhase.FAILED, error=error))
            raise

    def _returned(self, plan: BatchPlan) -> None:
        """Refuses the commit where `process` was ended, and returned all the same."""
        self._enter(WatchedBatch(plan, BatchPhase.CLOSING))
        if (error := self._ports.error()) is not None:
            raise error

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """A pause between two tries does not count; the phase begins again after it."""
        resting = self._batch
        self._enter(None)
        try:
            yield
        finally:
            self._enter(resting)

    def _enter(self, batch: WatchedBatch | None) -> None:
        with self._lock:
            self._batch, self._progress = batch, ()
            self._began = self._moved = self._ports.clock()
            if batch is None:
                self._ports.disarm()
                self._ports.mark(None)
            else:
                self._arm(batch)

    def _arm(self, batch: WatchedBatch) -> None:
        """Under the lock: a timer that outlives its batch would end a healthy driver. Without a limit there is none, but the mark is set."""
        self._armed = self._ports.clock()
        seconds = self._limits.still + self._limits.window + GRACE_SECONDS
        self._ports.mark(ArmedTimer(batch.plan.number, batch.phase.value, self._armed + seconds))
        if math.isfinite(seconds):
            self._ports.arm(seconds)

    # -- the watching thread's side ------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Warns of the batch that is under way, or ends it."""
        with self._lock:
            batch, began = self._batch, self._began
        if batch is None:
            return
        now = self._ports.clock()
        planning = batch.phase is BatchPhase.PROCESS and not self._ports.called()
        if planning:
            self._moved = now
        elif self._limits.is_watched(now - began):
            self._note(now)
        verdict, late = self._limits.verdict(now - began, now - self._moved), self._ports.late()
        seen = replace(batch, seconds=now - began, drained=late, planning=planning)
        if late or verdict is BatchVerdict.END or (planning and now - began >= self._limits.planning):
            self._end(batch, seen)
        elif verdict is BatchVerdict.WARN and not self._warned:
            self._warned = True
            self._ports.warn(seen)
        with self._lock:
            if self._batch is batch and now - self._armed >= STILL_SECONDS:
                self._arm(batch)

    def _end(self, batch: WatchedBatch, seen: WatchedBatch) -> None:
        with self._lock:
            if self._batch is batch:
                self._ports.end(seen)

    def _note(self, now: float) -> None:
        try:
            progress = self._ports.progress()
        except Exception:  # a JVM that does not answer: nothing is known to move
            log.exception("Spark did not report its progress")
            return
        if self._progress and progress != self._progress:
            self._moved = now
        self._progress = progress

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.tick()
