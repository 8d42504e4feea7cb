"""Ends the `prepare` of one consumer of a group that does not return, and no other consumer (docs/groups.md).

A driver of one consumer ends with such a `prepare` (`process.start_watch`). Here the consumer's jobs are cancelled, and its thread is interrupted
once a second. Only code that neither of them ends takes the driver with it: nobody can prove that its work is over.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sluice_checkpoints.errors import SluiceError
from sluice_consumer import logs
from sluice_consumer.poison.isolator import BatchInterrupt
from sluice_consumer.watchdog.batch_watch import GRACE_SECONDS, LOOK_SECONDS
from sluice_consumer.watchdog.start_watch import SAY_SECONDS, START_SECONDS

WHAT = "the preparation of the pipeline"


class StartOverdue(SluiceError):
    """`prepare` did not return in time. The consumer is started again after a pause."""


@dataclass(frozen=True)
class PrepareControls:
    """What can be done about a `prepare`. None of it waits.

    Attributes:
        cancel: cancels its Spark jobs. interrupt: raises `BatchInterrupt` in its thread.
        where: the line that it is at. late: whether the time of a drain is over.
        stuck: ends the driver, for this reason.
    """

    cancel: Callable[[], object]
    interrupt: Callable[[], None]
    where: Callable[[], str]
    late: Callable[[], bool]
    stuck: Callable[[str], None]


class PrepareWatch:
    """Watches the `prepare` of one run. `error` is what the run is to raise, if it was overdue."""

    def __init__(self, controls: PrepareControls, clock: Callable[[], float] = time.monotonic) -> None:
        self._controls, self._clock, self._began = controls, clock, clock()
        self._say, self._ended = SAY_SECONDS, 0.0
        self._lock = threading.Lock()  # held while it is ended, so that nothing of it reaches the batches
        self._over = threading.Event()
        self.error: StartOverdue | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watches what the calling thread does in here. What that does after its time counts for nothing.

        Raises:
            StartOverdue: it did not end in time, whatever it raised or returned then.
        """
        threading.Thread(target=self._run, name="prepare", daemon=True).start()
        try:
            yield
        except (Exception, BatchInterrupt) as error:
            if self.error is None:
                raise
            raise self.error from error
        finally:
            with self._lock:
                self._over.set()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.tick()

    def tick(self) -> None:
        """Once a second: says that it still takes, or does the next step towards its end."""
        with self._lock:
            if self._over.is_set():
                return
            now = self._clock()
            if self.error is not None:
                self._end(now)
            elif (taken := now - self._began) >= START_SECONDS or self._controls.late():
                self._ended, self.error = now, StartOverdue(f"{WHAT} did not end within {taken:.0f} s: it is at {self._controls.where()}")
                logs.warn(f"StartOverdue: {self.error}. Its Spark jobs are cancelled, and its thread is interrupted")
                self._end(now)
            elif taken >= self._say:
                self._say *= 2
                logs.warn(f"{WHAT} has taken {taken:.0f} s; it is ended after {START_SECONDS:.0f} s")

    def _end(self, now: float) -> None:
        self._controls.cancel()
        self._controls.interrupt()
        if now - self._ended >= GRACE_SECONDS:
            self._controls.stuck(f"{self.error}; it does not end though it was stopped")
