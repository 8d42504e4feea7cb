"""A run that is interrupted, wherever it is in what all consumers of a group share, leaves it to the others."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest

from sluice_consumer.group.turns import SlotQueue, StartTurns
from sluice_consumer.poison.isolator import BatchInterrupt
from sluice_consumer.watchdog.overdue_here import raise_in

INTERRUPTS, STEPS, PATIENCE = 100, 5000, 30.0
NOW = threading.Event()
NOW.set()


def of_turns() -> Callable[[object], None]:
    turns = StartTurns(time.monotonic)

    def act(who: object) -> None:
        turns.take(who, NOW)
        turns.end(who)

    return act


def of_queue() -> Callable[[object], None]:
    queue = SlotQueue(time.monotonic)

    def act(who: object) -> None:
        queue.join(who, NOW)
        queue.leave(who)

    return act


def ended(work: Callable[[], None], *, interrupted: int | None = None) -> bool:
    began = threading.Event()

    def run() -> None:
        try:
            began.set()
            work()
        except BatchInterrupt:
            return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert began.wait(PATIENCE)
    if interrupted is not None:
        for _ in range(interrupted):
            pass
        assert thread.ident is not None
        raise_in(thread.ident, BatchInterrupt)
    thread.join(PATIENCE)
    return not thread.is_alive()


@pytest.mark.parametrize("make", [of_turns, of_queue])
def test_an_interrupt_leaves_nothing_locked(make: Callable[[], Callable[[object], None]]) -> None:
    """Of a hundred at any moment. A lock of `threading.Condition` was kept by the third."""
    act, chance = make(), random.Random(7)  # noqa: S311 - replayable, not secret

    def for_ever() -> None:
        while True:
            act("interrupted")

    for _ in range(INTERRUPTS):
        assert ended(for_ever, interrupted=chance.randrange(STEPS))
        assert ended(lambda: act("another"))
