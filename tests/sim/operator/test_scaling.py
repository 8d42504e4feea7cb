"""`spec.autoscale`: the operator's machine with a stream whose load changes, and bounds that are set and removed at any moment."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from steering.load import Demand
from steering.machine import Operating, seconds
from test_ending import EXAMPLES, QUICK, begun

Json = dict[str, object]
BOUNDS: dict[str, Json | None] = {
    "one to eight": {"max": 8, "coolDownSeconds": 60},
    "two to three": {"min": 2, "max": 3, "coolDownSeconds": 60},
    "slowly": {"max": 4, "targetLagSeconds": 10},
    "six": {"min": 6, "max": 6},
    "none": None,
}
LOADS: dict[str, Demand | None] = {
    "none": Demand(0.0),
    "half": Demand(0.5),
    "three": Demand(3.0),
    "too much": Demand(20.0),
    "a hot shard": Demand(3.0, useful=1, hot=True),
    "a slow sink": Demand(2.0, useful=1),
    "unknown": None,
}
FEW = settings(QUICK, max_examples=min(8, EXAMPLES), stateful_step_count=16)  # their waits are long
long = st.one_of(seconds, st.integers(60, 200))


class Scaling(Operating):
    """And a load that changes."""

    @rule(bounds=st.sampled_from(sorted(BOUNDS)), seconds=long)
    def bounded(self, bounds: str, seconds: int) -> None:
        """`spec.autoscale` is set, edited or removed."""
        self.autoscales(BOUNDS[bounds], seconds)

    @rule(load=st.sampled_from(sorted(LOADS)), seconds=long)
    def loaded(self, load: str, seconds: int) -> None:
        """More comes, or less, or nobody knows."""
        self.demands(LOADS[load], seconds)


def chosen(operating: Operating) -> tuple[int, str]:
    world = operating.world
    assert len(world.executors()) == world.status["autoscale"]["replicas"]
    return len(world.executors()), world.status["autoscale"]["reason"]


def scaled(demand: Demand, seconds: int) -> Operating:
    operating = begun()
    operating.demands(demand, 10)
    operating.autoscales({"max": 8, "coolDownSeconds": 60}, seconds)
    return operating


@pytest.mark.slow
def test_the_number_keeps_its_bounds_through_anything() -> None:
    run_state_machine_as_test(Scaling, settings=FEW)  # type: ignore[no-untyped-call]  # hypothesis


@pytest.mark.slow
@pytest.mark.parametrize("write", range(1, 5))
@pytest.mark.parametrize("how", ["crash", "lose"])
def test_an_operator_that_dies_after_any_write_decides_nothing_twice(write: int, how: str) -> None:
    """The number is in the status before the driver gets it, and the next process continues from there."""
    operating = scaled(Demand(3.5), 120)
    operating.call_fails(who=0, what=how, at=write, times=1, seconds=0)
    operating.wait(200)
    assert chosen(operating)[0] == 4
    assert operating.world.reasons().count("Autoscaled") <= 1
    operating.teardown()


def short(how: str) -> Operating:
    """Two executors run, the load is that of three and a half, and no more come."""
    operating = scaled(Demand(2.0), 200)
    assert chosen(operating) == (2, "Steady")
    operating.executors_come(executors=how, seconds=1)
    operating.demands(Demand(3.5), 400)
    return operating


@pytest.mark.parametrize("how", ["pending", "refused"])
def test_executors_that_never_come_are_named_and_no_more_are_asked_for(how: str) -> None:
    operating = short(how)
    world = operating.world
    assert (world.status["autoscale"]["replicas"], world.status["autoscale"]["reason"]) == (4, "ExecutorsOverdue")
    message = world.condition("ScalingLimited")["message"]
    assert message.startswith("2 executors ready, 4 wanted")
    assert "kubectl sluice events orders" in message
    assert world.reasons().count("Autoscaled") <= 2
    operating.executors_come(executors="ok", seconds=400)
    assert chosen(operating)[0] == 4
    assert world.condition("ScalingLimited").get("reason") != "ExecutorsOverdue"
    assert world.condition("Stalled") == {}
    operating.teardown()
