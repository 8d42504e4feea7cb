"""The checker: each sort of problem is found, and named."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sluice_lab.nemesis import checker, takeover
from sluice_lab.nemesis.checker import Observations, PoisonAccount
from sluice_lab.nemesis.history import History, Invocation, ShardRead
from sluice_lab.nemesis.passes import CarriedOut, Flaw, PassAccount
from sluice_lab.nemesis.takeover import Sample, Window
from sluice_lab.scenario.account import Account, RecordPosition, ShardAccount

LEASE = 10.0
# When it happens, and how long it takes: each from a commit to the next; seconds.
TIMES: Mapping[str, tuple[float, float]] = {
    takeover.CALM: (10.5, 2),
    takeover.RESTART: (20.5, 20),
    takeover.UP: (50.5, 2),
    takeover.EXECUTOR: (60.5, 12),
    takeover.DOWN: (80.5, 2),
    takeover.DRIVER: (90.5, 28),
}
DIES = {takeover.RESTART: "B", takeover.DRIVER: "C"}


def samples() -> list[Sample]:
    """A commit a second, but for the pauses; B begins after the restart, C after the driver's death."""
    gaps = [(began, began + lasts - 0.5) for name, (began, lasts) in TIMES.items() if lasts > 2]
    found = []
    for at in range(140):
        epoch = "A" if at < 30 else "B" if at < 110 else "C"
        batch = sum(not any(a < before < b for a, b in gaps) for before in range(at + 1))
        found.append(Sample(float(at), "ABC".index(epoch) + 1, epoch, batch, released=epoch == "A" and at > 25, produced=0))
    return found


INVOCATIONS = (Invocation("A", 1, 5.0, -10.0), Invocation("B", 21, 39.0, 24.0), Invocation("C", 70, 117.0, 94.0))
READ = ShardRead("A", 1, "A-exec-1", "0.0", 0, "shard", 1.0, 2.0, (RecordPosition(1, 0),))
RIGHT = Observations(
    Account({"shard": ShardAccount(produced=1, delivered=1)}),
    History(INVOCATIONS, (READ,)),
    samples(),
    {name: Window(name, began, began + lasts) for name, (began, lasts) in TIMES.items()},
    LEASE,
)


def test_what_went_well_has_no_problems() -> None:
    found = checker.check(RIGHT)
    assert found.problems == []
    assert [pause.name for pause in found.pauses] == [takeover.RESTART, takeover.UP, takeover.EXECUTOR, takeover.DOWN, takeover.DRIVER]


@pytest.mark.parametrize(("window", "problems"), [((121.5, 5.0), []), (TIMES[takeover.DRIVER], ["27.5 s, more than lease 10 s * 1.05 + 5 s"])])
def test_the_pause_after_a_kill_with_a_standby_is_judged_if_there_was_one(window: tuple[float, float], problems: list[str]) -> None:
    began, lasts = window
    stood = Window(takeover.STANDBY, began, began + lasts)
    found = checker.check(replace(RIGHT, windows={**RIGHT.windows, takeover.STANDBY: stood}))
    assert found.pauses[-1].name == takeover.STANDBY
    assert [problem.partition(": ")[2] for problem in found.problems] == problems


def history(*changed: Any) -> History:
    return History(INVOCATIONS, (READ, *(replace(READ, **more) for more in changed)))


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"account": Account({"shard": ShardAccount(produced=1, missing=1)}, missing_numbers=(7,))}, r"missing \(7,\)"),
        ({"history": history({"attempt": 1, "first": 5.0, "last": 6.0})}, "3.00 s apart, not 10 s"),
        ({"history": history({"epoch": "B", "first": 5.0, "last": 6.0}, {"epoch": "C", "first": 8.0, "last": 9.0})}, "two epochs"),  # A was released
        ({"history": history({"attempt": 1, "first": 13.0, "last": 14.0, "positions": (RecordPosition(2, 0),)})}, "not the same for all"),
        (
            {"history": history({"batch": 9, "first": 51.0, "last": 51.1}, {"batch": 9, "attempt": 1, "first": 52.0, "last": 52.1})},
            "1 shard was read again",
        ),
        ({"lease": 3.0}, "executor SIGKILL: 11.5 s, more than lease 3 s"),
    ],
)
def test_each_sort_of_problem_is_named(changed: Any, problem: str) -> None:
    assert re.search(problem, "\n".join(checker.check(replace(RIGHT, **changed)).problems))


@pytest.mark.parametrize(
    ("letters", "said"),
    [
        (("poison-0", "poison-1"), []),
        (("poison-0",), ["poison without a letter: poison-1"]),
        (("poison-0", "poison-1", "poison-1"), ["letters of what is no poison, or twice: poison-1"]),
        (("poison-0", "poison-1", "17"), ["letters of what is no poison, or twice: 17"]),
    ],
)
def test_each_poison_record_and_nothing_else_is_a_letter_once(letters: tuple[str, ...], said: list[str]) -> None:
    assert checker.check(replace(RIGHT, poison=PoisonAccount(("poison-0", "poison-1"), letters))).problems == said


MOVED = PassAccount((CarriedOut("one", 9, 4), CarriedOut("two", 20)), {}, {}, 1200)


def test_with_resets_the_passes_judge_in_place_of_once() -> None:
    twice = Account({"shard": ShardAccount(produced=1, delivered=2, repeated=1)}, repeated_numbers=(1,))
    assert checker.check(replace(RIGHT, account=twice, passes=MOVED)).problems == []


@pytest.mark.parametrize(
    ("passes", "said"),
    [
        (replace(MOVED, wrong={(2, Flaw.MISSING): (5, 6)}), "pass 2: 2 missing, [5, 6]"),
        (replace(MOVED, resets=()), "no reset was carried out, so none was checked"),
    ],
)
def test_what_is_wrong_in_a_pass_is_a_problem(passes: PassAccount, said: str) -> None:
    assert checker.check(replace(RIGHT, passes=passes)).problems == [said]


def test_members_of_a_pool_wait_for_the_batches_of_each_other() -> None:
    """Of a pool, the slowest batch while calm counts in both bounds; of a consumer of its own, none does."""
    slow = replace(RIGHT, samples=[one for one in samples() if not 10 < one.at < 13])
    alone, (restart, up, *_) = checker.check(RIGHT), checker.check(RIGHT, {"slow": slow}).pauses
    assert slow.ordinary == 3.0
    assert restart.most == pytest.approx(alone.pauses[0].most + slow.ordinary)
    assert up.most == pytest.approx(alone.pauses[1].most - RIGHT.ordinary + slow.ordinary)


def test_neighbours_are_judged_by_the_same_checks_and_named() -> None:
    short = replace(RIGHT, account=Account({"shard": ShardAccount(produced=2, delivered=1, missing=1)}, (7,)), lease=0.0)
    found = checker.check(RIGHT, {"calm": RIGHT, "troubled": short})
    assert [one.name for one in found.neighbours["calm"].pauses] == [takeover.RESTART, takeover.EXECUTOR, takeover.DRIVER]
    named = ("the idempotent sink", f"{takeover.EXECUTOR}: ", f"{takeover.DRIVER}: ")
    assert [problem.startswith(f"troubled: {name}") for name, problem in zip(named, found.problems, strict=True)] == [True] * 3
