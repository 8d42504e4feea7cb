"""Turns of a group: runs that begin, and batches that wait for a task slot.

Runs of a group that begin together take turns (`StartTurns`), until the first batch of each is done. Forty starts at a time would share a few cores.
A heartbeat that finds no core is late. A lease that is lost in the middle of a start may end the driver, and the next driver starts like that again.

Of batches that wait for a slot the one comes first that began first (`SlotQueue`). Spark's fair scheduler prefers the pool with fewer running tasks,
and among equals the one whose *name* is less. With a consumer's name for its pool, consumers late in the alphabet waited for minutes where slots were
few. So each batch has a number for a name. Spark never forgets a pool, so numbers begin again after `ROUND`. What begins then would pass all that
waits: it waits itself, until that is over, and before anybody watches it. What takes longer is not waited for, and not passed either: numbers begin
behind it.

A thread that is here may be interrupted (`consumer_run`). A `Condition` would then stay locked for ever, and no consumer would get on: its lock is
taken by Python's own code, in which an interrupt is raised, too. That of a `Lock` is not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

AT_ONCE = 4
TURN_SECONDS = 5.0  # of a turn: a start that hangs keeps the others no longer
ROUND = 1000
MOST = ROUND + ROUND // 2  # but for those that are to end, which do not wait for the next round
SLOT_SECONDS = 60.0  # what is older is waited for no longer: it may hang
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
            self._since = {each: since for each, since in self._since.items() if now - since < TURN_SECONDS}
            if len(self._since) >= AT_ONCE and not anyway:
                return False
            self._since[who] = now
            return True

    def end(self, who: object) -> None:
        """The turn is over; it may have been before."""
        with self._lock:
            self._since.pop(who, None)


@dataclass(frozen=True, slots=True)
class SlotNumber:
    """A number behind all others of its round, and since when somebody has it."""

    number: int
    round: int
    since: float


@dataclass
class SlotQueue:
    """What is under way, one thing a consumer. Called from any thread."""

    clock: Callable[[], float]
    _held: dict[object, SlotNumber] = field(default_factory=dict)
    _round: int = 0
    _first: int = 0
    _end: int = ROUND
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def join(self, who: object, stopped: threading.Event) -> str:
        """A name behind all that are in, for something new of `who`. Waits where numbers begin again, unless that is to end anyway."""
        while (number := self.joined(who, wait=not stopped.is_set())) is None:
            stopped.wait(LOOK_SECONDS)
        return name_of(number)

    def joined(self, who: object, *, wait: bool = True) -> int | None:
        """The number; None instead of waiting. Without `wait` it is behind all others all the same."""
        with self._lock:
            self._held.pop(who, None)
            now, number = self.clock(), self._behind()
            if number >= self._end and wait:
                if any(now - each.since < SLOT_SECONDS for each in self._held.values()):
                    return None
                number = self._again()
            held = {each.number for each in self._held.values()}  # of a round before, too: no two have one
            while number in held:
                number += 1
            self._held[who] = SlotNumber(number, self._round, now)
            return number

    def _behind(self) -> int:
        return 1 + max((each.number for each in self._held.values() if each.round == self._round), default=self._first - 1)

    def _again(self) -> int:
        """Begins a round behind what takes long. It has half as many numbers at least, and none is above `MOST`."""
        self._round += 1
        self._first = 1 + max((each.number for each in self._held.values() if each.number < ROUND), default=-1)
        self._end = max(ROUND, self._first + ROUND // 2)
        return self._first

    def leave(self, who: object) -> None:
        """Nothing of `who` waits; it may have left before."""
        with self._lock:
            self._held.pop(who, None)


def name_of(number: int) -> str:
    """As text that sorts like the number."""
    return f"{number:04d}"
