"""Ends a driver that does not come to its first batch: Spark that does not start, or a `prepare` of the user's that does not return.

Before the first batch nobody watches (`batch_watch` does from then on), while the supervisor keeps the lease. What a driver waits for on purpose, its
orders and the lease of the driver before, has an end of its own and is not watched here.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from sluice_consumer import logs
from sluice_consumer.exits import stacks
from sluice_consumer.exits.ending import Ending, leave, report

START_SECONDS = 1800.0  # a cold node needs a minute or two
SAY_SECONDS = 60.0


class StartWatch:
    """Watches one step of a start. `leave` is replaced in tests."""

    def __init__(self, what: str, leave: Callable[[int], object] = leave, clock: Callable[[], float] = time.monotonic) -> None:
        """`what`: the step, as the subject of a sentence."""
        self._what, self._leave, self._clock = what, leave, clock
        self._over = threading.Event()

    def run(self, wait: Callable[[float], bool] | None = None) -> None:
        """Says at growing intervals that it still takes, and ends the process in the end. `wait`: whether it is over; sleeps so long."""
        wait, began, say = wait or self._over.wait, self._clock(), SAY_SECONDS
        while not wait(min(say, START_SECONDS) - (self._clock() - began)):
            taken, say = self._clock() - began, 2 * say
            if taken >= START_SECONDS:
                self._end(taken)
                return
            logs.warn(f"{self._what} has taken {taken:.0f} s; the driver ends after {START_SECONDS:.0f} s")

    def _end(self, taken: float) -> None:
        logs.log.error("Python's threads:\n%s", stacks.python_stacks())
        where = f"the driver is at {stacks.innermost()}"
        report(Ending(1, "StartOverdue", f"{self._what} did not end within {taken:.0f} s: {where}. Its log has the stacks of all threads"))
        self._leave(1)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watches what happens in here."""
        threading.Thread(target=self.run, name="start", daemon=True).start()
        try:
            yield
        finally:
            self._over.set()
