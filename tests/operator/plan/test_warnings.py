"""What a driver warns of is a condition: until its cause ends, or for good."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plan.views import EXECUTORS, REPORT, attempt, driver, view

from sluice_operator.plan.advice import advised
from sluice_operator.plan.conditions import PASSING, WARNINGS
from sluice_operator.plan.rules import plan
from sluice_operator.state.actions import Plan
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import Status

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
