"""The end of a driver by its timer outside of Python (`batch_watch`), as its supervisor sees it: an exit status of 1 without a word.

Code that holds Python's lock lets no thread of the driver say why, or leave a note. So the driver marks beforehand what its timer is armed for
(`ending.OwnWord.mark`), and its supervisor, which holds the lease, reports and notes it (docs/protocol.md, "Poison").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluice_checkpoints.protocol.poison_note import note, noted
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_consumer.config import OnErrorConfig
from sluice_consumer.exits.ending import Ending
from sluice_consumer.poison.search import DoubtLimits, Search, stored

STATUS = 1  # of a process that `faulthandler` ends
PROCESS = "process"  # the phase in which it is the user's code that runs
ERROR = "BatchOverdue in code that holds Python's lock"


@dataclass(frozen=True)
class ArmedTimer:
    """What a driver's timer is armed for.

    Attributes:
        batch: its number. phase: where it is (`batch_watch.BatchPhase`).
        due: when the timer ends the driver, in monotonic seconds of the machine; infinite: batches have no limit, and the driver no timer.
    """

    batch: int
    phase: str
    due: float

    def __str__(self) -> str:
        return f"armed {self.batch} {self.phase} {self.due:.3f}"

    @staticmethod
    def parse(mark: str) -> ArmedTimer | None:
        """What `str` made; None: nothing is armed."""
        armed, *words = mark.split() or [""]
        return ArmedTimer(int(words[0]), words[1], float(words[2])) if armed == "armed" and len(words) == 3 else None

    def ended(self, status: int, now: float) -> bool:
        """Whether a process that ended without a word, with this status and by now, was ended by this timer."""
        return status == STATUS and now >= self.due

    def ending(self, how: OnErrorConfig | None) -> Ending:
        """The message for people."""
        return Ending(1, "BatchOverdue", f"{self._words()}. The driver was ended{self._counted(how)}; the next one is given the batch again")

    def note(self, store: CheckpointStore, epoch: Epoch, how: OnErrorConfig | None) -> None:
        """Leaves the failure of `process` for the next driver, beside what is known of the batch already.

        Raises:
            Fenced: a later epoch took over. ServiceUnavailable: nothing was noted.
        """
        if how is None or not self._counts(how):
            return
        before = noted(store)
        known = before.search if before.batch == self.batch else stored(Search(how.attempts, DoubtLimits()), 0.0)
        note(store, epoch, replace(before, batch=self.batch, search=known, failed=ERROR, trace=self._words()))

    def _counts(self, how: OnErrorConfig | None) -> bool:
        return self.phase == PROCESS and how is not None and how.isolate and how.dead_letter is not None

    def _counted(self, how: OnErrorConfig | None) -> str:
        return "; it counts as a failure of the batch (onError)" if self._counts(how) else ""

    def _words(self) -> str:
        return (
            f"batch {self.batch} has not ended (batch.maxSeconds): code in the driver holds Python's lock and does not give it back "
            f"(phase: {self.phase}). It may be native code, or a regular expression without an end; the driver's log shows where, after `Timeout`"
        )
