"""Starts of forty consumers in one driver."""

from __future__ import annotations

import threading

from patience import PATIENCE

from sluice_consumer.group.turns import AT_ONCE, TURN_SECONDS, StartTurns


def taken(turns: StartTurns, who: object, stopped: threading.Event) -> threading.Event:
    has = threading.Event()

    def run() -> None:
        turns.take(who, stopped)
        has.set()

    threading.Thread(target=run, daemon=True).start()
    return has


def test_a_few_begin_at_a_time_and_the_next_one_when_one_of_them_is_through() -> None:
    turns, never = StartTurns(clock=lambda: 0.0), threading.Event()
    assert all(taken(turns, number, never).wait(PATIENCE) for number in range(AT_ONCE))
    later = [taken(turns, AT_ONCE, never)]
    assert not later[0].wait(0.3)
    turns.end(0)
    turns.end(0)
    assert later[0].wait(PATIENCE)
    later.append(taken(turns, AT_ONCE + 1, never))
    assert not later[1].wait(0.3)
    turns.end(1)
    assert later[1].wait(PATIENCE)


def test_a_start_that_hangs_keeps_the_others_for_a_while_only() -> None:
    now, never = [0.0], threading.Event()
    turns = StartTurns(clock=lambda: now[0])
    assert all(taken(turns, number, never).wait(PATIENCE) for number in range(AT_ONCE))
    next_one = taken(turns, "next", never)
    assert not next_one.wait(0.3)
    now[0] = TURN_SECONDS
    assert next_one.wait(PATIENCE)


def test_who_is_to_end_waits_for_no_turn() -> None:
    """A drain would wait with it."""
    turns, stop = StartTurns(clock=lambda: 0.0), threading.Event()
    assert all(taken(turns, number, stop).wait(PATIENCE) for number in range(AT_ONCE))
    next_one = taken(turns, "next", stop)
    assert not next_one.wait(0.3)
    stop.set()
    assert next_one.wait(PATIENCE)
