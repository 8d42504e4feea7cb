"""When the work of one consumer in a group ends, when the whole driver does, and whether a consumer is started again. Pure.

The rules are in docs/groups.md, "A lost lease ends the work of one consumer".
Supervisor and driver both ask, each with its own clock readings: either of them may be paused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from sluice_checkpoints.errors import Refused
from sluice_consumer.exits.ending import Ending
from sluice_consumer.process.lease_handoff import WORKING

ENDING = 1 / 2  # of the lease: what is left of `WORKING` is the time to prove that the work is over
BEATS = 6  # a lease: two heartbeats may fail, each after a sixth of the lease, before the work is ended
FIRST, LONGEST = 1.0, 60.0  # seconds
STEADY = 300.0  # a run that lasted so long begins the pauses again


class Act(Enum):
    """What is to be done about an epoch's work."""

    NONE, END_WORK, END_DRIVER = "none", "end work", "end driver"


@dataclass(frozen=True, slots=True)
class EpochWork:
    """The work of one consumer's epoch in a driver.

    Attributes:
        lease: seconds. sent: when the last accepted heartbeat was sent, in monotonic seconds of the machine.
        lost: it is to end. Nothing takes that back: a thread that is being ended is no longer one that works.
        over: it is proven that nothing of it works any more.
    """

    generation: int
    lease: float
    sent: float
    lost: bool = False
    over: bool = False

    def beaten(self, generation: int, sent: float) -> EpochWork:
        """A heartbeat of this generation was accepted. One that was sent too late brings nothing back: this process, or the machine, was paused."""
        late = sent - self.sent > self.lease * WORKING
        return replace(self.looked(sent), sent=max(self.sent, sent)) if generation == self.generation and not late else self

    def losing(self, generation: int) -> EpochWork:
        """A heartbeat of this generation was refused, or its work is to end for another reason."""
        return replace(self, lost=True) if generation == self.generation else self

    def ended(self, generation: int) -> EpochWork:
        """Work of this generation is proven to be over."""
        return replace(self, over=True) if generation == self.generation else self

    def looked(self, now: float) -> EpochWork:
        """As it is now: half of a lease without a heartbeat counts as its loss."""
        return replace(self, lost=True) if now - self.sent > self.lease * ENDING else self

    def act(self, now: float) -> Act:
        """What is to be done now. The driver is ended where work may outlive the time that the protocol gives an epoch."""
        if self.over:
            return Act.NONE
        if now - self.sent > self.lease * WORKING:
            return Act.END_DRIVER
        return Act.END_WORK if self.lost else Act.NONE


def ends_for_good(ending: Ending) -> bool:
    """A run that reached its end or was drained, and one that is refused: you have to act. Everything else is tried again."""
    return ending.code in {0, Refused.exit_code}


@dataclass
class Pauses:
    """The pauses of one consumer."""

    next: float = FIRST

    def after(self, lasted: float) -> float:
        """Seconds to wait after a run that lasted so many seconds."""
        pause = FIRST if lasted >= STEADY else self.next
        self.next = min(2 * pause, LONGEST)
        return pause


def exit_code(endings: list[Ending]) -> int:
    """Of the program: 0 if all consumers ended well, else that of the first that did not."""
    return next((ending.code for ending in endings if ending.code), 0)
