"""What a driver warns of is a condition: until its cause ends, or for good."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plan.views import EXECUTORS, NOW, REPORT, attempt, driver, gone, view, wanted

from sluice_operator.plan.advice import advised
from sluice_operator.plan.conditions import PASSING, WARNINGS
from sluice_operator.plan.rules import plan
from sluice_operator.state.actions import Plan
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import Exit, Status

TELL_THE_TIME = {"RetentionNear", "Isolating"}  # their words change with every report, so one event says that they began


def heard(before: Status, *warnings: str, reports: bool = True) -> Plan:
    pod = driver(report=replace(REPORT, warnings=warnings) if reports else None)
    return plan(view(status=before, observed=Observed(drivers=(pod,), executors=EXECUTORS)))


def message(of: Plan, kind: str) -> str | None:
    condition = of.status.condition(kind)
    return condition.message if condition else None


@pytest.mark.parametrize("kind", [*WARNINGS, *PASSING])
def test_a_warning_is_a_condition_until_its_cause_ends_or_for_good(kind: str) -> None:
    """Without a report nothing ends: the retention only comes nearer, and no batch passes."""
    first = heard(Status(observed_generation=1, driver=attempt()), f"{kind}: 81%")
    second = heard(first.status, f"{kind}: 82%")
    assert [message(each, kind) for each in (first, second)] == [advised(kind, said, "orders") for said in ("81%", "82%")]
    events = [[event.reason for event in each.events if event.reason == kind] for each in (first, second)]
    assert events == [[kind], [] if kind in TELL_THE_TIME else [kind]]
    silent, over = heard(second.status, reports=False), heard(second.status)
    assert message(silent, kind) == message(second, kind)
    assert message(over, kind) == (message(second, kind) if kind in WARNINGS else None)


def test_where_the_end_of_a_run_is_reached_nothing_is_left_to_warn_of() -> None:
    """The retention comes nearer to no record that is wanted."""
    spec = wanted(until={"tip": True})
    before = heard(Status(observed_generation=1, driver=attempt()), *(f"{kind}: 81%" for kind in PASSING)).status
    end = Exit(code=0, reason="EndReached", message="7 records", at=NOW)
    after = plan(view(spec=spec, status=replace(before, driver=gone(spec_hash=spec.driver_hash, exit=end)), observed=Observed())).status
    assert [(before.condition(kind) is None, after.condition(kind)) for kind in PASSING] == [(False, None)] * len(PASSING)
