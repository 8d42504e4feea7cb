"""A driver that is told to stop hears it, whatever its main thread is doing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest
from patience import PATIENCE

from sluice_consumer.process.sigterm import set_on_term


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_it_is_heard_while_the_main_thread_holds_the_events_lock() -> None:
    """As it does for a moment whenever it begins to wait; a handler that sets the event itself would wait for ever."""
    event = threading.Event()
    set_on_term(event, lambda: None)
    with event._cond:  # type: ignore[attr-defined]  # the lock that `set` takes
        os.kill(os.getpid(), signal.SIGTERM)
    assert event.wait(PATIENCE)


def test_several_of_them_say_it_once() -> None:
    """Impatient people and supervisors send more than one."""
    event, said, done = threading.Event(), list[int](), threading.Event()

    def say() -> None:
        said.append(1)
        done.set()

    set_on_term(event, say)
    for _ in range(50):
        os.kill(os.getpid(), signal.SIGTERM)
    assert event.wait(PATIENCE)
    assert done.wait(PATIENCE)
    assert said == [1]
