"""Runs of a group that begin together take turns, until the first batch of each is done. Forty starts at a time would share a few cores.

A heartbeat that finds no core is late. A lease that is lost in the middle of a start may end the driver, and the next driver starts like that again.

A thread that is here may be interrupted (`consumer_run`). A `Condition` would then stay locked for ever, and no consumer would get on: its lock is
taken by Python's own code, in which an interrupt is raised, too. That of a `Lock` is not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

AT_ONCE = 4
LONGEST_SECONDS = 5.0  # of a turn: a start that hangs keeps the others no longer
LOOK_SECONDS = 0.2


@dataclass
class StartTurns:
    """Runs that begin now, and since when. Called from any thread."""

    clock: Callable[[], float]
    _since: dict[object, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, who: object, stopped: threading.Event) -> None:
        """Waits until it is the turn of a run, unless that is to end anyway."""
        while not self._taken(who, anyway=stopped.is_set()):
            stopped.wait(LOOK_SECONDS)

    def _taken(self, who: object, *, anyway: bool) -> bool:
        with self._lock:
            now = self.clock()
            self._since = {each: since for each, since in self._since.items() if now - since < LONGEST_SECONDS}
            if len(self._since) >= AT_ONCE and not anyway:
                return False
            self._since[who] = now
            return True

    def end(self, who: object) -> None:
        """The turn is over; it may have been before."""
        with self._lock:
            self._since.pop(who, None)
