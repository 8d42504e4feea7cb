"""Mutants of rollouts with a standby, `spec.rollout`: when one is made, when it follows, and what ends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mutants import Patch
from steering.mutant import do, mutant

from sluice_operator.apply import manifests
from sluice_operator.plan import driver_succession, jobs, reset, rules, standby
from sluice_operator.state.view import View

ALWAYS = do("rolls", rollout={"strategy": "Standby", "standby": "Always", "readySeconds": 30}, standby="ok")
ROLLING = do("rolls", rollout={"strategy": "Standby", "readySeconds": 30}, standby="ok")
EDITED = do("edit", edit="batch 9", seconds=4)


@mutant("a driver is drained before its standby is ready", "ready_first", ROLLING, EDITED, run=30)
def not_awaited(patch: Patch) -> None:
    """As long a gap as without a standby, and twice the memory."""
    patch.setattr(standby, "is_ready", lambda _view, _pod: True)


@mutant("a standby is made whatever else runs", "two_drivers_at_most", ROLLING, EDITED, do("edit", edit="batch 1", seconds=9), run=30)
def a_third(patch: Patch) -> None:
    """Each edit adds another driver."""
    patch.setattr(standby, "ended", lambda _view: ())
    patch.setattr(standby, "beside", _named_again(standby.beside))


def _named_again(real: Any) -> Any:
    def beside(view: View, what: str, *actions: Any) -> Any:
        return standby._name(view, 1) if "not wanted" in what else real(view, what, *actions)

    return beside


@mutant("a driver takes over beside one that works, not as a standby", "two_drivers_at_most", ROLLING, EDITED, run=30)
def no_flag(patch: Patch) -> None:
    """It ends with 75, again and again."""
    real = manifests.driver_pod
    patch.setattr(manifests, "driver_pod", lambda *args, **_: real(*args))


def _stop_without_standby(view: View, why: str) -> Any:
    others = tuple(pod for pod in view.observed.drivers if pod != view.standby_pod)
    return driver_succession.stop_driver(replace(view, observed=replace(view.observed, drivers=others, executors=view.own_executors)), why)


@mutant("a suspended consumer keeps its standby", "stop_is_kept", ROLLING, EDITED, do("suspend", seconds=60), run=30)
def stands_on(patch: Patch) -> None:
    """It takes the lease that the driver releases."""
    patch.setattr(rules, "stop_driver", _stop_without_standby)
    patch.setattr(rules, "unwanted", lambda _view: ())


@mutant("a suspended consumer is said to drain, and its driver is not asked to end", "suspended_rests", do("suspend", seconds=600), run=30)
def never_asked(patch: Patch) -> None:
    """It reads on, for as long as nobody looks at its pods."""
    real = driver_succession.drain
    patch.setattr(driver_succession, "drain", lambda view, pod, why: replace(real(view, pod, why), actions=()))


@mutant(
    "a suspended consumer ends its driver and not its standby", "suspended_rests", ALWAYS, do("wait", seconds=30), do("suspend", seconds=600), run=30
)
def works_on(patch: Patch) -> None:
    """It takes the lease that the driver releases, and works."""
    patch.setattr(driver_succession, "ends", lambda _view, _pods: ())
    patch.setattr(rules, "unwanted", lambda _view: ())


@mutant("positions are moved beside a standby", "stop_is_kept", ROLLING, EDITED, do("moves", id_="one", to="latest", seconds=60), run=30)
def moved_beside(patch: Patch) -> None:
    """It takes the lease before the Job does."""
    patch.setattr(reset, "stop_driver", _stop_without_standby)
    patch.setattr(rules, "unwanted", lambda _view: ())
    patch.setattr(jobs, "clear", lambda *_: None)


@mutant("what was a standby is not told apart from a stray", "no_hot_loop", ROLLING, EDITED, do("wait", seconds=30), run=30)
def a_stray(patch: Patch) -> None:
    """The operator deletes what it has just made."""
    patch.setattr(View, "standby_pod", property(lambda _view: None))


@mutant(
    "a standby that failed is tried again without a pause",
    "no_hot_loop",
    do("rolls", rollout={"strategy": "Standby", "readySeconds": 30}, standby="fails"),
    EDITED,
    do("wait", seconds=300),
    run=30,
)
def no_pause(patch: Patch) -> None:
    """A pod every few seconds."""
    real = standby._backing_off
    patch.setitem(standby.STATES, standby.StandbyState.BACKING_OFF, lambda view, one: real(view, replace(one, next_at=view.now)))
