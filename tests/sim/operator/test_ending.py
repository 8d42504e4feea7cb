"""Runs that have an end, `spec.until`: the operator's machine with a user who sets, moves and removes it at any moment."""

from __future__ import annotations

import pytest
from drawn import TIMES
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from kstatus import CURRENT, kstatus
from steering.machine import ENDS, Operating, seconds

EXAMPLES = 10 * TIMES
QUICK = settings(
    max_examples=EXAMPLES,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


class Ending(Operating):
    """And a run that may end."""

    @rule(at=st.sampled_from(sorted(ENDS)), seconds=seconds)
    def ends(self, at: str, seconds: int) -> None:
        super().ends(at, seconds)

    @rule(run=st.sampled_from([1, 10, 100]))
    def lasts(self, run: int) -> None:
        super().lasts(run)


def begun() -> Operating:
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=20)
    return operating


def test_a_run_with_an_end_comes_to_it_through_anything() -> None:
    run_state_machine_as_test(Ending, settings=QUICK)  # type: ignore[no-untyped-call]  # hypothesis


def test_a_run_that_reached_its_end_is_current_and_healthy_and_nothing_of_it_is_left() -> None:
    operating = begun()
    operating.ends("at noon", 60)
    world = operating.world
    assert (world.status["phase"], world.condition("Ready")["reason"], kstatus(world.must())) == ("Completed", "EndReached", CURRENT)
    assert "7 records in 2 batches of 4 shards" in world.condition("Ready")["message"]
    assert not list(world.memory.all("Pod"))
    assert world.reasons().count("EndReached") == 1
    assert "DriverFailed" not in world.reasons()
    attempt = world.status["driver"]["attempt"]
    operating.ask("restart", 1)
    operating.wait(700)
    assert (world.status["phase"], world.status["driver"]["attempt"], world.status["restarts"]["count"]) == ("Completed", attempt, 0)
    operating.teardown()


@pytest.mark.parametrize("how", ["suspend", "scale"])
def test_a_run_that_reached_its_end_stays_so_after_a_rest(how: str) -> None:
    """Neither field is in the driver's hash."""
    operating = begun()
    operating.ends("at noon", 60)
    attempt = operating.world.status["driver"]["attempt"]
    for number in (0, 2):
        operating.suspend(20) if how == "suspend" else operating.scale(number, 20)
    assert (operating.world.status["phase"], operating.world.status["driver"]["attempt"]) == ("Completed", attempt)
    operating.teardown()


def test_an_interrupted_run_goes_on() -> None:
    operating = begun()
    operating.lasts(40)
    operating.ends("at noon", 30)
    operating.delete_pod(grace=None, role="driver", seconds=20)
    assert operating.world.status["restarts"]["count"] == 0
    assert operating.world.status["phase"] != "Completed"
    operating.wait(100)
    assert operating.world.status["phase"] == "Completed"
    operating.teardown()
