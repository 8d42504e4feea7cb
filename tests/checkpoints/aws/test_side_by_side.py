"""Calls side by side: how many at once, whose answer is whose, and what an error leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from sluice_checkpoints.aws.side_by_side import side_by_side
from sluice_checkpoints.errors import Fenced, LostRace

SECONDS = 20  # until a test fails in which too few calls run at once


def test_as_many_calls_run_at_once_as_there_are_connections() -> None:
    together = threading.Barrier(4)
    running, most = set[int](), list[int]()

    def call(number: int) -> int:
        running.add(number)
        together.wait(SECONDS)
        most.append(len(running))
        together.wait(SECONDS)
        running.discard(number)
        return number

    assert side_by_side((partial(call, number) for number in range(16)), 4) == list(range(16))
    assert max(most) == 4


def test_answers_come_in_the_order_of_the_calls_whichever_ends_first() -> None:
    second = threading.Event()

    def first() -> str:
        return "first" if second.wait(SECONDS) else "never"

    def other() -> str:
        second.set()
        return "second"

    assert side_by_side([first, other], 2) == ["first", "second"]


def test_a_call_that_raises_ends_those_that_have_not_begun_and_waits_for_those_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two connections and a thousand calls, hundreds are never made: the rest is cancelled while two are under way."""
    made, begun, cancelled = list[int](), threading.Event(), threading.Event()
    shutdown = ThreadPoolExecutor.shutdown

    def ends(pool: ThreadPoolExecutor, *, wait: bool = True, cancel_futures: bool = False) -> None:
        shutdown(pool, wait=False, cancel_futures=cancel_futures)
        cancelled.set()
        shutdown(pool, wait=wait)

    def call(number: int) -> None:
        if number == 0:
            begun.wait(SECONDS)
            raise Fenced("a later epoch")
        begun.set()
        cancelled.wait(SECONDS)
        made.append(number)

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", ends)
    with pytest.raises(Fenced):
        side_by_side((partial(call, number) for number in range(1000)), 2)
    assert 1 in made
    assert len(made) <= 2


def test_of_several_errors_the_first_in_the_list_is_raised() -> None:
    together = threading.Barrier(2)

    def fails(error: Exception) -> None:
        together.wait(SECONDS)
        raise error

    calls: list[Callable[[], None]] = [partial(fails, LostRace("first")), partial(fails, Fenced("second"))]
    with pytest.raises(LostRace, match="first"):
        side_by_side(calls, 2)


def test_a_single_call_is_made_by_the_caller() -> None:
    assert side_by_side([threading.current_thread], 16) == [threading.current_thread()]
    assert side_by_side([], 16) == []
