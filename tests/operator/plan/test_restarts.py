"""What the end of a driver counts as, and how long the next attempt waits (`spec.restart`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from plan.views import attempt, seconds, view, wanted

from sluice_operator.plan.rules import plan
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import Exit, RestartStatus, Status

LONG, SHORT = 600, 10  # seconds: `resetAfterSeconds` and `backoffSeconds`
Counts = tuple[int, int]  # failures and interruptions, since a driver ran for LONG


@dataclass(frozen=True)
class Ended:
    """A driver that began so many seconds ago by its node's clock, and ran for so many."""

    code: int | None
    reason: str
    ran: float = 3
    began: float | None = None
    stopping: str | None = None


ENDS: dict[str, tuple[Ended, Counts, Counts, float | None]] = {
    "a failure": (Ended(1, "Failed"), (0, 0), (1, 0), 10),
    "the second in a row": (Ended(1, "Failed"), (1, 0), (2, 0), 20),
    "the third": (Ended(1, "Failed"), (2, 0), (3, 0), 40),
    "the tenth": (Ended(1, "Failed"), (9, 0), (10, 0), 300),
    "an exit of zero that nobody asked for: a stream has no end": (Ended(0, "Completed"), (0, 0), (1, 0), 10),
    "the first failure after a long run, before which nothing says that a pause helps": (Ended(1, "Failed", LONG), (4, 2), (1, 0), None),
    "a failure just before that": (Ended(1, "Failed", LONG - 1), (4, 2), (5, 2), 160),
    "another epoch has the lease": (Ended(75, "LeaseHeld"), (2, 0), (2, 1), 10),
    "another epoch took the lease": (Ended(76, "Fenced"), (2, 1), (2, 2), 20),
    "a pod that somebody deleted": (Ended(0, "Drained", SHORT), (0, 2), (0, 3), None),
    "a pod that vanished": (Ended(None, "DriverLost", SHORT), (0, 0), (0, 1), None),
    "a pod that is taken away at each start": (Ended(None, "Evicted", SHORT - 1), (0, 3), (0, 4), 80),
    "what was asked for": (Ended(0, "Drained", stopping="SpecChanged"), (2, 1), (2, 1), None),
    "the operator's clock is 20 minutes ahead": (Ended(1, "Failed", began=-1200), (3, 0), (4, 0), 80),
    "the operator's clock is 20 minutes behind": (Ended(1, "Failed", LONG * 2, began=-3), (3, 0), (4, 0), 80),
}


def after(end: Ended, before: Counts, **policy: Any) -> RestartStatus:
    began = -end.ran if end.began is None else end.began
    over = Exit(code=end.code, reason=end.reason, message="sink is full", at=seconds(began + end.ran))
    driver = attempt(started_at=seconds(began), exit=over, stopping=end.stopping)
    status = Status(observed_generation=1, driver=driver, restarts=RestartStatus(count=before[0], interruptions=before[1]))
    return plan(view(spec=wanted(restart=policy), status=status, observed=Observed())).status.restarts


@pytest.mark.parametrize(("end", "before", "counts", "pause"), ENDS.values(), ids=ENDS)
def test_an_end_is_counted_and_the_next_attempt_waits(end: Ended, before: Counts, counts: Counts, pause: float | None) -> None:
    """How long a driver ran is the time between two clocks: the shorter one counts."""
    found = after(end, before)
    assert (found.count, found.interruptions) == counts
    assert found.next_at == (None if pause is None else seconds(pause))


def test_a_driver_that_fails_at_its_start_is_followed_after_a_pause_however_soon_it_counts_as_stable() -> None:
    assert after(Ended(1, "Failed"), (3, 0), resetAfterSeconds=1).next_at == seconds(10)
