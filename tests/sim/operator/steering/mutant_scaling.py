"""Mutants of `spec.autoscale`: what bounds a number, what a removal waits for, and where it is written first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from mutants import Patch
from steering.load import Demand
from steering.mutant import do, mutant

from sluice_operator.plan import autoscale, scaling
from sluice_operator.plan import rules as plan
from sluice_operator.state.view import Step, View

GROWS = do("demands", demand=Demand(20.0), seconds=1), do("autoscales", bounds={"max": 8, "coolDownSeconds": 600}, seconds=300)


@mutant("executors beyond the active shards are added", "scaled_within", *GROWS)
def no_cap(patch: Patch) -> None:
    """They would have nothing to read."""
    patch.setattr(scaling, "cap", lambda _found, bounds: bounds.max)


@mutant("a step up has no limit", "scaled_within", do("autoscales", bounds={"max": 8}, seconds=1), *GROWS[:1], do("wait", seconds=300))
def no_doubling(patch: Patch) -> None:
    """One wrong figure would order everything."""
    real = scaling._changed
    patch.setattr(scaling, "_changed", lambda before, number, *why: real(before, 8 if number > before.replicas else number, *why))


@mutant(
    "an executor is removed as soon as the load is small",
    "scaled_steadily",
    *GROWS,
    do("demands", demand=Demand(0.1), seconds=300),
)
def no_cool_down(patch: Patch) -> None:
    """The number goes to and fro with the load."""
    real = scaling._fewer
    patch.setattr(scaling, "_cooled", lambda *_: True)
    patch.setattr(scaling, "_fewer", lambda before, found, bounds: real(replace(before, quiet_since=found.now - timedelta(days=1)), found, bounds))


@mutant("the driver gets a number that is not written down", "scaled_within", *GROWS)
def not_written(patch: Patch) -> None:
    """A crash forgets it."""

    def rule(view: View) -> Step | None:
        step = plan.autoscale(view)
        return replace(step, autoscale=view.status.autoscale) if step and step.actions else step

    patch.setattr(plan, "RULES", tuple(rule if each is plan.autoscale else each for each in plan.RULES))


@mutant(
    "the bounds of the spec are not looked at",
    "scaled_within",
    do("autoscales", bounds={"min": 1, "max": 3}, seconds=1),
    *GROWS[:1],
    do("wait", seconds=300),
)
def no_bounds(patch: Patch) -> None:
    """The last word is the tenant's driver's."""
    real = autoscale.bounds_of
    patch.setattr(autoscale, "bounds_of", lambda view: (found := real(view)) and replace(found, max=100))


@mutant(
    "more executors are asked for while others do not come",
    "scaled_within",
    do("demands", demand=Demand(20.0), seconds=1),
    do("executors_come", executors="pending", seconds=1),
    do("autoscales", bounds={"max": 3, "coolDownSeconds": 600}, seconds=200),
    do("autoscales", bounds={"max": 8, "coolDownSeconds": 600}, seconds=300),
)
def no_shortage(patch: Patch) -> None:
    """Those that run are busy, and each step asks the cluster for what it does not have."""
    patch.setattr(scaling, "decide_short", lambda before, _there, _why, found, bounds: scaling._changed(before, bounds.within(4), "ScaledUp", found))


@mutant(
    "executors that do not come are given up within the cool-down",
    "scaled_steadily",
    do("demands", demand=Demand(0.5), seconds=1),
    do("autoscales", bounds={"max": 8, "coolDownSeconds": 600}, seconds=100),
    do("executors_come", executors="pending", seconds=1),
    do("demands", demand=Demand(20.0), seconds=200),
    do("demands", demand=Demand(0.1), seconds=400),
)
def no_rest(patch: Patch) -> None:
    """The number goes to and fro with the load."""
    patch.setattr(scaling, "_rested", lambda *_: True)
