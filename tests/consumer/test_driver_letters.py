"""What becomes of rejected records when `process` raises: `pipelines.DriverLetters`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from sluice_checkpoints.letters.letter import DeadLetter
from sluice_consumer.pipelines import DriverLetters


@dataclass
class Kept:
    forgotten: int = 0

    def reject(self, letters: Sequence[DeadLetter]) -> None:
        """See `Rejections`."""

    def raised(self) -> None:
        self.forgotten += 1


@pytest.mark.parametrize(("owner", "stored", "forgotten"), [("c", "", 1), ("c", "another", 1), ("c", "c", 0), ("another", "", 0)])
def test_rejections_are_forgotten_unless_a_sink_stores_in_parts_or_another_consumer_has_them(owner: str, stored: str, forgotten: int) -> None:
    """A position that is behind a rejected record would skip it. What a sink stores for another consumer says nothing of this one."""
    store, letters = Kept(), DriverLetters()
    letters.keep(owner, store)
    letters.storing(stored)
    letters.raised("c")
    assert store.forgotten == forgotten


def test_two_consumers_of_a_process_keep_their_own_rejections() -> None:
    one, other, letters = Kept(), Kept(), DriverLetters()
    letters.keep("one", one)
    letters.keep("other", other)
    assert (letters.of("one"), letters.of("other")) == (one, other)
    letters.keep("one", None)
    assert (letters.of("one"), letters.of("other")) == (None, other)


def test_a_batch_that_is_issued_again_is_stored_nowhere_yet() -> None:
    store, letters = Kept(), DriverLetters()
    letters.keep("c", store)
    letters.storing("c")
    letters.begin("c")
    letters.raised("c")
    assert store.forgotten == 1
