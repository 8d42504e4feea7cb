"""Checks are made in their order, each within its time; the first that fails is the last."""

from __future__ import annotations

import threading
from itertools import count

import pytest

from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_checkpoints.stream.model import StreamNotFound
from sluice_consumer.checks import run
from sluice_consumer.checks.model import CheckFinding, CheckOutcome, OutOfTime, StartCheck, in_order, judge
from sluice_consumer.checks.run import within

LATE = CheckFinding(CheckOutcome.NO_ANSWER, "check the network")
NAMES = ("first", "second", "third")


def made(outcomes: dict[str, CheckOutcome]) -> tuple[list[tuple[str, CheckOutcome]], list[str]]:
    looked = list[str]()

    def perform(check: StartCheck[None]) -> CheckFinding:
        looked.append(check.name)
        return CheckFinding(outcomes.get(check.name, CheckOutcome.OK), "")

    checks = [StartCheck[None](name, "", LATE, lambda _: LATE) for name in NAMES]
    ticks = count()
    return [(each.name, each.finding.outcome) for each in in_order(checks, perform, lambda: float(next(ticks)))], looked


def test_the_order_is_from_what_costs_nothing_to_what_needs_all_before_it() -> None:
    assert [check.name for check in run.CHECKS] == ["config", "entrypoint", "java", "credentials", "stream", "table", "sink"]


@pytest.mark.parametrize("outcome", [CheckOutcome.FAILED, CheckOutcome.NO_ANSWER])
def test_what_follows_a_failure_is_not_made(outcome: CheckOutcome) -> None:
    """It would fail for the same reason, and hide it."""
    results, looked = made({"second": outcome})
    assert results == [("first", CheckOutcome.OK), ("second", outcome), ("third", CheckOutcome.NOT_REACHED)]
    assert looked == ["first", "second"]


@pytest.mark.parametrize("outcome", [CheckOutcome.OK, CheckOutcome.WARNING, CheckOutcome.UNDECIDED])
def test_what_is_no_failure_stops_nothing(outcome: CheckOutcome) -> None:
    assert made({"first": outcome})[1] == list(NAMES)


def test_seconds_are_those_of_the_check() -> None:
    ticks = iter([10.0, 11.5, 20.0, 20.25])
    checks = [StartCheck[None](name, "", LATE, lambda _: LATE) for name in NAMES[:2]]
    results = in_order(checks, lambda _: CheckFinding(CheckOutcome.OK, ""), lambda: next(ticks))
    assert [result.seconds for result in results] == [1.5, 0.25]


@pytest.mark.parametrize(
    ("error", "outcome", "said"),
    [
        (Refused("start.position: no"), CheckOutcome.FAILED, "start.position: no"),
        (StreamNotFound("no such stream"), CheckOutcome.FAILED, "no such stream"),
        (Again("connection refused"), CheckOutcome.NO_ANSWER, "connection refused"),
        (ServiceUnavailable("throttled"), CheckOutcome.NO_ANSWER, "throttled"),
        (OutOfTime("no end within 2 s"), CheckOutcome.NO_ANSWER, "no end within 2 s; check the network"),
        (KeyError("surprise"), CheckOutcome.UNDECIDED, "KeyError: 'surprise'"),
    ],
)
def test_what_an_error_of_a_check_means(error: Exception, outcome: CheckOutcome, said: str) -> None:
    """A refusal is certain, a silent service may answer later, and what nobody thought of stops no consumer."""
    finding = judge(error, LATE)
    assert (finding.outcome, finding.message) == (outcome, said)
    assert finding.error is (error if outcome is CheckOutcome.FAILED else None)


def test_a_check_that_hangs_is_left_behind() -> None:
    """It would hold up a start for as long as a host says nothing."""
    over = threading.Event()
    with pytest.raises(OutOfTime, match=r"no end within 0\.05 s"):
        within(0.05, over.wait)
    over.set()
    assert within(60, lambda: 7) == 7


def test_an_error_of_a_check_comes_out_of_its_thread() -> None:
    def refuse() -> None:
        raise Refused("no")

    with pytest.raises(Refused, match="no"):
        within(60, refuse)
