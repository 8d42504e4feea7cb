"""Keeps a lease without a thread: its holder calls `alive()` between slow operations, and a heartbeat is sent when one is due."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

BEATS_A_LEASE = 3


class Time(Protocol):
    """Monotonic seconds, and a pause."""

    @property
    def clock(self) -> Callable[[], float]:
        """Now."""
        ...

    @property
    def sleep(self) -> Callable[[float], None]:
        """Waits so many seconds."""
        ...


class LeaseKeeper(ABC):
    """A lease that is ours. `sent` is the time before the write was sent that took it: promises count from there."""

    def __init__(self, time: Time, lease_millis: int, sent: float) -> None:
        self._time, self._beaten = time, sent
        self._interval = lease_millis / 1000 / BEATS_A_LEASE

    @abstractmethod
    def beat(self) -> None:
        """One beat.

        Raises:
            LeaseHeld: the lease is another's.
        """

    def alive(self) -> None:
        """Beats when a third of the lease has passed since the last time.

        Raises:
            LeaseHeld: the lease is another's.
        """
        now = self._time.clock()
        if now - self._beaten >= self._interval:
            self.beat()
            self._beaten = now

    def pause(self, until: float) -> None:
        """Waits until the clock shows `until` seconds, beating."""
        while (left := until - self._time.clock()) > 0:
            self._time.sleep(min(left, self._interval))
            self.alive()
