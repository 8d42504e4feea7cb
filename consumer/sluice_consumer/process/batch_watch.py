"""Ends a driver whose batch does not end (docs/runbooks.md, "A batch that does not end").

`verdict` decides. `BatchWatch` asks it once a second, in a thread of its own. A thread that holds Python's lock holds that thread up, too: for this
there is a timer outside of Python, after the second limit.
"""

from __future__ import annotations

import faulthandler
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sluice_consumer.batches.consumer import Engine
from sluice_consumer.batches.planner import BatchPlan

LOOK_SECONDS = 1.0
STILL_SECONDS = 10.0  # a batch moves if something of it moved so lately
GRACE_SECONDS = 10.0  # for the driver to say where it is, and to end itself
Progress = tuple[int, ...]


class BatchVerdict(Enum):
    """What is to be done about a batch."""

    WAIT, WARN, END = "wait", "warn", "end"


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """`batch.maxSeconds` and `batch.maxSecondsMoving`."""

    still: float
    moving: float

    def verdict(self, elapsed: float, moved: float) -> BatchVerdict:
        """What a batch deserves.

        Args:
            elapsed: seconds since it began.
            moved: seconds since a record or a task of it moved.
        """
        if elapsed < self.still:
            return BatchVerdict.WAIT
        still = moved >= min(STILL_SECONDS, self.still)
        return BatchVerdict.END if still or elapsed >= self.moving else BatchVerdict.WARN

    def looks(self, elapsed: float) -> bool:
        """Whether it matters by now what moves."""
        return elapsed >= self.still - min(STILL_SECONDS, self.still)


@dataclass(frozen=True)
class WatchPorts:
    """What the driver brings.

    Attributes:
        called: whether `process` was called. What comes before it, Spark's planning, counts as moving: a cold Spark takes its time.
        progress: numbers that change when something of the batch moves; it may fail.
        warn: called once a batch, with the batch and its seconds.
        end: the same when it is overdue; it does not return.
        clock: monotonic seconds.
        arm: ends the process after so many seconds, without Python. disarm: takes that back.
    """

    called: Callable[[], bool]
    progress: Callable[[], Progress]
    warn: Callable[[BatchPlan, float], None]
    end: Callable[[BatchPlan, float], None]
    clock: Callable[[], float] = time.monotonic
    arm: Callable[[float], None] = lambda seconds: faulthandler.dump_traceback_later(seconds, exit=True)
    disarm: Callable[[], None] = faulthandler.cancel_dump_traceback_later


class BatchWatch:
    """Watches the batches of one driver, one after the other. It is the engine that the batch loop sees."""

    def __init__(self, engine: Engine, limits: BatchLimits, ports: WatchPorts) -> None:
        self._engine, self._limits, self._ports = engine, limits, ports
        self._lock = threading.Lock()
        self._plan: BatchPlan | None = None
        self._began = self._moved = 0.0
        self._progress: Progress = ()
        self._warned = False

    def start(self) -> None:
        """Looks once a second from now on."""
        threading.Thread(target=self._run, name="batch", daemon=True).start()

    def run(self, plan: BatchPlan) -> None:
        """See `Engine.run`."""
        with self._lock:
            self._plan, self._warned, self._progress = plan, False, ()
            self._began = self._moved = self._ports.clock()
        self._ports.arm(self._limits.moving + GRACE_SECONDS)
        try:
            self._engine.run(plan)
        finally:
            with self._lock:
                self._plan = None
            self._ports.disarm()

    def look(self) -> None:
        """Warns of the batch that runs, or ends the driver."""
        with self._lock:
            plan, began = self._plan, self._began
        if plan is None:
            return
        now = self._ports.clock()
        if not self._ports.called():
            self._moved = now
        elif self._limits.looks(now - began):
            self._note(now)
        verdict = self._limits.verdict(now - began, now - self._moved)
        if verdict is BatchVerdict.END and self._plan is plan:
            self._ports.end(plan, now - began)
        elif verdict is BatchVerdict.WARN and not self._warned:
            self._warned = True
            self._ports.warn(plan, now - began)

    def _note(self, now: float) -> None:
        progress = self._ports.progress()
        if self._progress and progress != self._progress:
            self._moved = now
        self._progress = progress

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            self.look()
