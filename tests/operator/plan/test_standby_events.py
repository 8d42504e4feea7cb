"""What is said of a standby: that it failed, that the operator stopped it, or that it is replaced. Only a failure is a warning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from plan.test_failover import ALWAYS, END, ONE, SPEC, STOPS, behind, second, told
from plan.views import NOW, RESOURCE, driver, gone, seconds, wanted

from sluice_operator.plan.rules import plan
from sluice_operator.state.actions import CreateStandby
from sluice_operator.state.objects import Pod, Report
from sluice_operator.state.status import Exit, StandbyState
from sluice_operator.state.view import View

DRAINED = second(gone_by=seconds(30), exit=Exit(code=0, reason="Drained", message="drained", at=NOW))
MUTE = Report(number=4, phase="Starting")


def said(view: View) -> list[tuple[str, str, bool]]:
    return [(event.reason, event.message, event.warning) for event in plan(view).events if event.reason.startswith("Standby")]


UNWANTED: dict[str, tuple[dict[str, Any], str]] = {
    "spec": ({"batch": {"intervalSeconds": 9}}, "another version is wanted"),
    "rollout": ({"rollout": {"strategy": "Standby"}}, "no standby is wanted now"),
    "suspend": (STOPS["suspend"], "nothing of the consumer shall run"),
    "scale": (STOPS["scale"], "nothing of the consumer shall run"),
    "position": (STOPS["position"], "spec.position moves the positions first"),
}


@pytest.mark.parametrize("why", UNWANTED)
@pytest.mark.parametrize("state", [StandbyState.STARTING, StandbyState.READY, StandbyState.SILENT])
def test_a_standby_that_the_operator_stopped_has_not_failed(why: str, state: StandbyState) -> None:
    fields, words = UNWANTED[why]
    one, spec = replace(ONE, state=state), wanted(**ALWAYS | fields)
    ends = behind(one, driver(), DRAINED, spec=spec)
    assert said(ends) == []
    after = plan(ends).status.standby
    assert after is not None
    assert after.state is state
    over = behind(one, driver(), spec=spec)
    assert said(over)[0] == ("StandbyStopped", f"attempt 2: orders-driver-2 was stopped: {words}", False)
    left = plan(over).status.standby
    assert left is None or left.attempt == 3


def test_a_restart_that_is_asked_for_stops_a_standby_without_a_warning() -> None:
    """It had the Secrets of its time."""
    asked = replace(behind(ONE, driver(), DRAINED), resource=replace(RESOURCE, restart="monday"))
    assert said(asked) == []
    over = replace(behind(ONE, driver()), resource=replace(RESOURCE, restart="monday"))
    assert said(over)[0] == ("StandbyStopped", "attempt 2: orders-driver-2 was stopped: a restart was requested after its start", False)


@pytest.mark.parametrize("state", [StandbyState.STARTING, StandbyState.READY])
def test_a_standby_that_is_being_stopped_is_not_called_ready(state: StandbyState) -> None:
    leaves = behind(replace(ONE, state=state), driver(), second(gone_by=seconds(30)), spec=wanted(**ALWAYS, batch={"intervalSeconds": 9}))
    assert told(plan(leaves)) == ("False", "StandbyAwaited")
    back = behind(replace(ONE, state=state), driver(), second(gone_by=seconds(30)), spec=wanted(rollout={"strategy": "Standby"}))
    assert plan(back).status.condition("StandbyReady") is None


def test_a_standby_that_is_stopped_for_an_invalid_spec_says_so() -> None:
    unknown = replace(behind(ONE, driver()), asked=None, problem="spec.batch: unknown field")
    text = "attempt 2: orders-driver-2 was stopped: the spec is not valid, and nobody knows whether it may follow"
    assert said(unknown)[0] == ("StandbyStopped", text, False)


def test_one_that_failed_by_itself_has_ended_and_is_a_warning() -> None:
    died = second(exit=Exit(code=1, reason="Failed", message="no module named orders", at=NOW))
    assert said(behind(ONE, driver(), died)) == [("StandbyFailed", "attempt 2 ended, and the driver continues: no module named orders", True)]


def test_one_that_was_not_ready_in_time_is_replaced_and_has_not_ended() -> None:
    slow = behind(replace(ONE, state=StandbyState.STARTING, since=seconds(-300)), driver(), second(report=MUTE))
    text = "attempt 2 is replaced, and the driver continues: orders-driver-2 was not ready within 300 s (spec.rollout.readySeconds)"
    assert said(slow) == [("StandbyFailed", text, True)]
    ready = plan(slow).status.condition("StandbyReady")
    assert ready is not None
    assert ready.message.startswith("orders-driver-2 ends, and the driver continues")


def lost(*pods: Pod, since: float = -300) -> View:
    return behind(replace(ONE, state=StandbyState.SILENT, since=seconds(since), message="orders-driver-2 reports no longer"), *pods)


def test_one_that_was_silent_for_long_is_replaced_and_was_a_warning_before() -> None:
    text = "attempt 2: orders-driver-2 is replaced, and the driver continues: orders-driver-2 reports no longer"
    assert said(lost(driver(), second(report=MUTE))) == [("StandbyStopped", text, False)]


def test_one_that_is_silent_and_may_not_follow_an_ended_driver_is_replaced() -> None:
    found = replace(lost(second(report=MUTE), since=0), status=replace(lost().status, driver=gone()))
    found = replace(found, observed=replace(found.observed, executors=()))
    made = plan(found)
    assert made.actions == (END,)
    assert [reason for reason, _, _ in said(found)] == ["StandbyStopped"]
    after = replace(found, status=made.status, observed=replace(found.observed, drivers=(DRAINED,)))
    assert said(after) == []


def test_a_rollout_after_a_stopped_standby_begins_without_a_pause() -> None:
    """The former one has not failed, so the next one is the first of its series."""
    edited = wanted(**ALWAYS, batch={"intervalSeconds": 9})
    made = plan(behind(ONE, driver(), spec=edited))
    assert CreateStandby() in made.actions
    assert made.status.standby is not None
    assert (made.status.standby.tries, made.status.standby.spec_hash == SPEC.driver_hash) == (1, False)
