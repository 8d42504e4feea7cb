"""Whether a consumer of a group is started again after its run has ended, and after which pause. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sluice_checkpoints.errors import Refused
from sluice_consumer.process.ending import Ending

FIRST, LONGEST = 1.0, 60.0  # seconds
STEADY = 300.0  # a run that lasted so long begins the pauses again


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
