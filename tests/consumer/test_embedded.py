"""A life inside of somebody else's session ends once its lease is lost, and says so."""

from __future__ import annotations

import threading
import time

import pytest

from sluice_consumer import embedded
from sluice_consumer.embedded import LeaseLost
from sluice_consumer.supervisor import Heart


def test_work_that_was_stopped_was_lost_also_if_a_beat_is_accepted_later() -> None:
    """Else a query or a backfill that was stopped half-way would look as if it had come to its end."""
    stopped, beats = threading.Event(), list[bool]()

    def beat(_promise: int | None) -> bool:
        beats.append(stopped.is_set())
        if not stopped.is_set():
            raise TimeoutError("the table does not answer")
        return True

    heart = Heart(beat, lease=0.2, accepted=time.monotonic() - 0.2)
    with embedded.beating(heart, stopped.set):
        assert stopped.wait(60)
        heart.once()
        assert beats[-1]
        with pytest.raises(LeaseLost, match="no heartbeat was accepted"):
            embedded.raise_if_lost(heart)


def test_a_beat_that_is_accepted_in_time_keeps_the_life() -> None:
    """Nothing is stopped, whatever was refused before."""
    heart = Heart(lambda _promise: True, lease=60.0, accepted=time.monotonic() - 30)
    with embedded.beating(heart, lambda: pytest.fail("stopped")):
        heart.once()
        embedded.raise_if_lost(heart)
