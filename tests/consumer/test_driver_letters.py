"""What becomes of rejected records when `process` raises: `pipelines.DriverLetters`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from sluice_checkpoints.letters.letter import DeadLetter
from sluice_consumer.pipelines import DriverLetters


@dataclass
class Kept:
    """Implements `Rejections`."""

    forgotten: int = 0

    def reject(self, letters: Sequence[DeadLetter]) -> None:
        """See `Rejections`."""

    def raised(self) -> None:
        """See `Rejections`."""
        self.forgotten += 1


@pytest.mark.parametrize(("owner", "stored", "forgotten"), [("c", False, 1), (None, False, 1), ("c", True, 0), ("another", False, 0)])
def test_rejections_are_forgotten_unless_a_sink_stores_in_parts_or_another_consumer_has_them(
    owner: str | None, *, stored: bool, forgotten: int
) -> None:
    """A position that is behind a rejected record would skip it."""
    store = Kept()
    DriverLetters(store, owner, stored).raised("c")
    assert store.forgotten == forgotten
