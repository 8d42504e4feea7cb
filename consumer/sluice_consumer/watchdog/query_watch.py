"""Ends a streaming query whose batch does not end (docs/structured-streaming.md).

Spark runs the batch here, in a process that is somebody else's. So the query is stopped, which cancels its jobs; `source` raises `BatchOverdue`. A
function of foreachBatch that does not return keeps the query from stopping: then the lease is given up, and another run may take the consumer over.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sluice_consumer import logs
from sluice_consumer.exits import stacks
from sluice_consumer.poison.isolator import BatchOverdue
from sluice_consumer.watchdog.batch_watch import BatchLimits, BatchVerdict, Progress

log = logging.getLogger(__name__)
LOOK_SECONDS = 2.0


@dataclass(frozen=True)
class QueryPorts:
    """What the source brings.

    Attributes:
        open: the batch that Spark was given and has not finished; None: none.
        working: whether Spark works on it; between two triggers it does not.
        progress: numbers that change when something of it moves.
        stop: stops the query; whether it stopped in time. give_up: ends the heartbeats.
    """

    open: Callable[[], int | None]
    working: Callable[[], bool]
    progress: Callable[[], Progress]
    stop: Callable[[], bool]
    give_up: Callable[[], None]


class QueryWatch:
    """Watches the batches of one query.

    Attributes:
        error: what the source is to raise; None: no batch was overdue.
    """

    def __init__(self, limits: BatchLimits, ports: QueryPorts, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._ports, self._clock = limits, ports, clock
        self._over = threading.Event()
        self._batch: int | None = None
        self._began = self._moved = clock()
        self._progress: Progress = ()
        self._warned = False
        self.error: BatchOverdue | None = None

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Looks every two seconds in here."""
        threading.Thread(target=self._run, name="batch", daemon=True).start()
        try:
            yield
        finally:
            self._over.set()

    def tick(self) -> None:
        """Warns of the batch that is open, or ends its query, once."""
        now, batch = self._clock(), self._ports.open()
        if batch is None or batch != self._batch or not self._ports.working():
            self._batch, self._began, self._moved, self._progress, self._warned = batch, now, now, (), False
            return
        if self._limits.is_watched(now - self._began):
            progress = self._ports.progress()
            self._moved = now if self._progress and progress != self._progress else self._moved
            self._progress = progress
        verdict = self._limits.verdict(now - self._began, now - self._moved)
        if verdict is BatchVerdict.END and self.error is None:
            self._end(f"batch {batch} has not ended after {now - self._began:.0f} s (batch.maxSeconds)")
        elif verdict is BatchVerdict.WARN and not self._warned:
            self._warned = True
            logs.warn(f"BatchSlow: batch {batch} has taken {now - self._began:.0f} s, longer than batch.maxSeconds; its records still move")

    def _end(self, message: str) -> None:
        self.error = BatchOverdue(f"{message}: its query was stopped. The batch comes again in the next run")
        log.error("%s; Python's threads:\n%s", message, stacks.python_stacks())
        logs.warn(f"BatchOverdue: {message}. The query is stopped; the batch comes again in the next run")
        if not self._ports.stop():
            logs.warn("BatchOverdue: the query does not stop, for a function of foreachBatch does not return; the lease is given up")
            self._ports.give_up()

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                self.tick()
            except Exception:  # Spark does not answer, or the session is gone; the next look finds out more
                log.exception("the state of the query could not be read")
