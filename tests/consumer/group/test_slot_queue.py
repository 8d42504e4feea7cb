"""Which of forty batches gets a slot. Spark prefers the pool with fewer running tasks, then the one whose name is less (FairSchedulingAlgorithm)."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sluice_consumer.group.turns import MOST, ROUND, SLOT_SECONDS, SlotQueue, name_of

MEMBERS, SLOTS, TURNS = 40, 2, 2000


def waits(name: Callable[[int, int], str | None], hanging: int = -1) -> list[int]:
    """The longest wait of each member, in turns. Each wants a slot again as soon as its batch is over; a turn serves as many as there are slots.

    Args:
        name: of a member's next batch in this turn; None: it may not begin yet.
        hanging: a member whose batch never is over.
    """
    waiting, since, longest = dict[int, str](), dict.fromkeys(range(MEMBERS), 0), [0] * MEMBERS
    for turn in range(TURNS):
        for number in range(MEMBERS):
            if number not in waiting and (found := name(number, turn)) is not None:
                waiting[number] = found
        for number in sorted(waiting.keys() - {hanging}, key=lambda each: waiting[each])[:SLOTS]:
            longest[number] = max(longest[number], turn - since[number])
            since[number] = turn
            del waiting[number]
    return [max(most, TURNS - since[number]) for number, most in enumerate(longest) if number != hanging]


def queued(seconds: float, hanging: int = -1) -> list[int]:
    now = [0.0]
    queue = SlotQueue(clock=lambda: now[0])

    def name(number: int, turn: int) -> str | None:
        now[0] = turn * seconds
        found = queue.joined(number)
        return None if found is None else name_of(found)

    return waits(name, hanging)


def test_where_slots_are_few_no_consumer_waits_longer_than_another() -> None:
    assert max(queued(1.0)) <= 2 * MEMBERS / SLOTS + 1
    assert max(queued(1.0, hanging=7)) <= 2 * MEMBERS / SLOTS + 1


def test_what_hangs_holds_the_others_up_for_a_while_only() -> None:
    assert max(queued(0.1, hanging=7)) <= SLOT_SECONDS / 0.1


def test_by_their_own_names_most_would_never_come() -> None:
    assert waits(lambda number, _: f"consumer-{number:02d}").count(TURNS) >= MEMBERS - 2 * SLOTS


def test_what_begins_later_comes_later_and_an_empty_queue_begins_again() -> None:
    queue = SlotQueue(clock=lambda: 0.0)
    assert [queue.joined(name) for name in "abc"] == [0, 1, 2]
    assert queue.joined("a") == 3
    queue.leave("c")
    queue.leave("c")
    assert queue.joined("d") == 4
    for name in "abd":
        queue.leave(name)
    assert queue.joined("b") == 0


def test_numbers_are_few_and_no_two_have_one() -> None:
    """Spark keeps a pool for each; one that hangs keeps its number, and others pass."""
    now = [0.0]
    queue = SlotQueue(clock=lambda: now[0])
    held = {-1: queue.joined(-1)}
    for turn in range(4 * ROUND):
        now[0] += SLOT_SECONDS
        held[turn % MEMBERS] = queue.joined(turn % MEMBERS)
        assert len(set(held.values())) == len(held)
        assert None not in held.values()
        assert max(number or 0 for number in held.values()) <= MOST + MEMBERS


def full() -> SlotQueue:
    """Numbers begin again with the next one, and "old" has begun before that."""
    queue = SlotQueue(clock=lambda: 0.0)
    numbers = [queue.joined(f"{turn % 2}") or 0 for turn in range(ROUND - 1)]
    assert [*numbers, queue.joined("old")] == [*range(ROUND)]
    queue.leave("0")
    queue.leave("1")
    return queue


def joining(queue: SlotQueue, who: str, stopped: threading.Event) -> tuple[threading.Thread, list[str]]:
    got = list[str]()
    thread = threading.Thread(target=lambda: got.append(queue.join(who, stopped)), daemon=True)
    thread.start()
    return thread, got


def test_where_numbers_begin_again_one_waits_until_the_last_of_the_round_before_is_over() -> None:
    queue = full()
    waiting, got = joining(queue, "new", threading.Event())
    waiting.join(0.3)
    assert got == []
    queue.leave("old")
    waiting.join(30)
    assert got == ["0000"]


def test_who_is_to_end_does_not_wait_and_passes_nobody() -> None:
    queue, stop = full(), threading.Event()
    waiting, got = joining(queue, "new", stop)
    waiting.join(0.3)
    assert got == []
    stop.set()
    waiting.join(30)
    assert got == [f"{ROUND}"]
    assert queue.joined("another") is None


def test_names_sort_as_numbers_do() -> None:
    numbers = [0, 9, 10, 99, 100, ROUND - 1, ROUND, MOST + MEMBERS]
    assert sorted(map(name_of, numbers)) == [name_of(number) for number in numbers]


def test_numbers_do_not_grow_while_one_batch_takes_its_time() -> None:
    """Others come and go behind it. With a number of its own for each of them, all would soon wait for it where numbers begin again."""
    queue = SlotQueue(clock=lambda: 0.0)
    assert queue.joined("long") == 0
    for _ in range(2 * ROUND):
        assert queue.joined("short") == 1
        queue.leave("short")


@pytest.mark.parametrize("begun", [0, 1, ROUND // 2, ROUND - 2, ROUND - 1])
def test_a_batch_that_takes_long_is_passed_by_none_that_begins_later(begun: int) -> None:
    now = [0.0]
    queue = SlotQueue(clock=lambda: now[0])
    for turn in range(begun):
        queue.joined(turn % 2)
    long = queue.joined("long")
    assert long == begun
    for turn in range(5 * ROUND):
        now[0] += SLOT_SECONDS / 10
        number = queue.joined(turn % MEMBERS)
        if number is None:  # the others of the round before end, and the long one takes more than a minute
            now[0] += SLOT_SECONDS
            for who in range(MEMBERS):
                queue.leave(who)
            number = queue.joined(turn % MEMBERS)
        assert number is not None
        assert long < number < MOST
