"""A `prepare` that does not return ends its consumer's run, and the driver only if nothing else ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sluice_consumer.group.prepare_watch import PrepareControls, PrepareWatch, StartOverdue
from sluice_consumer.poison.isolator import BatchInterrupt
from sluice_consumer.watchdog.batch_watch import GRACE_SECONDS
from sluice_consumer.watchdog.overdue_here import raise_in
from sluice_consumer.watchdog.start_watch import START_SECONDS


class Watched:
    def __init__(self, interrupt: Callable[[], None] = lambda: None) -> None:
        self.now, self.did, self.late = 0.0, list[str](), False
        controls = PrepareControls(
            cancel=lambda: self.did.append("cancel"),
            interrupt=lambda: (self.did.append("interrupt"), interrupt())[0],
            where=lambda: "orders.py:3 in prepare",
            late=lambda: self.late,
            stuck=lambda why: self.did.append(f"stuck: {why}"),
        )
        self.watch = PrepareWatch(controls, lambda: self.now)

    def at(self, now: float) -> list[str]:
        self.now, self.did = now, []
        self.watch.tick()
        return self.did


def test_a_prepare_that_does_not_return_is_ended_step_by_step_and_the_driver_last(caplog: pytest.LogCaptureFixture) -> None:
    """It would hold its lease for ever, and nobody would process its stream."""
    watched = Watched()
    assert [watched.at(now) for now in (1.0, 61.0, START_SECONDS - 1)] == [[], [], []]
    assert "the preparation of the pipeline has taken 61 s; it is ended after 1800 s" in caplog.text
    assert watched.at(START_SECONDS) == watched.at(START_SECONDS + 1) == ["cancel", "interrupt"]
    *steps, stuck = watched.at(START_SECONDS + GRACE_SECONDS)
    assert steps == ["cancel", "interrupt"]
    assert stuck.startswith("stuck: the preparation of the pipeline did not end within 1800 s: it is at orders.py:3 in prepare")


def test_a_drain_ends_a_prepare_when_its_time_is_over() -> None:
    """The program would wait for it until it is killed, with the leases of all."""
    watched = Watched()
    assert watched.at(5.0) == []
    watched.late = True
    assert watched.at(6.0) == ["cancel", "interrupt"]


def test_an_interrupt_ends_the_thread_with_what_was_overdue() -> None:
    """A real thread, which no `except Exception` of the user's keeps."""
    thread = threading.get_ident()
    watched = Watched(lambda: raise_in(thread, BatchInterrupt))

    def hang() -> None:
        with watched.watch.watching():
            threading.Thread(target=watched.at, args=(START_SECONDS,)).start()
            while True:
                threading.Event().wait(0.01)

    with pytest.raises(StartOverdue, match=r"orders\.py:3 in prepare"):
        hang()


@pytest.mark.parametrize("raises", [True, False])
def test_a_prepare_that_was_ended_does_not_go_on_to_batches(raises: bool) -> None:  # noqa: FBT001
    """Its job was cancelled: what it returns, or raises, says nothing."""
    watched = Watched()

    def late() -> None:
        with watched.watch.watching():
            watched.at(START_SECONDS)
            if raises:
                raise ValueError

    with pytest.raises(StartOverdue):
        late()
    assert watched.at(START_SECONDS + GRACE_SECONDS) == []


def test_what_a_prepare_raises_in_time_is_its_own() -> None:
    watched = Watched()
    with pytest.raises(ValueError, match="no table"), watched.watch.watching():
        raise ValueError("no table")
    assert watched.at(START_SECONDS) == []
