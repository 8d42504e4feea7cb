"""Events are warnings only where somebody has to look."""

from __future__ import annotations

import pytest
from plan.views import attempt, ended, view, wanted

from sluice_operator.plan.events import Reason
from sluice_operator.plan.rules import plan
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import Status


@pytest.mark.parametrize(
    ("code", "reason", "warning"),
    [(0, "Drained", False), (75, "Drained", False), (75, "Evicted", False), (1, "Drained", True), (137, "Killed", True), (None, "Evicted", True)],
)
def test_a_driver_whose_pod_was_taken_away_is_a_warning_unless_it_drained(code: int | None, reason: str, warning: bool) -> None:  # noqa: FBT001
    """With `spec.until` a drain in front of the end is 75, and nothing went wrong."""
    spec = wanted(until={"tip": True})
    status = Status(observed_generation=1, driver=attempt(spec_hash=spec.driver_hash))
    planned = plan(view(spec=spec, status=status, observed=Observed(drivers=(ended(code, reason),))))  # type: ignore[arg-type]  # no code: evicted
    found = [event.warning for event in planned.events if event.reason == Reason.DRIVER_DISRUPTED]
    assert found == [warning]
