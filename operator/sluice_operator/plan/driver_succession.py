"""One driver after another: the last one ends its work, its executors too, and only then the next is made.

These are the rules of `plan.rules` about that, and the steps they are made of. The next driver is named in the status before the last one is asked to
end, so that a restart is told whole in one write; it is made when nothing is left of the last one.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.plan.record import FORCED
from sluice_operator.plan.running import UNHEARD
from sluice_operator.state.actions import Action, CreateDriver, DeletePod
from sluice_operator.state.status import DriverStatus, Leaving, Phase
from sluice_operator.state.view import Step, View, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice_operator.state.objects import Pod

LATE = timedelta(seconds=30)
OVERDUE = "DriverOverdue"


def clear_strays(view: View) -> Step | None:
    """Drivers that the status does not name: another leader's or an earlier epoch's. Ours are ended, others waited for."""
    strays = [pod for pod in view.observed.drivers if not view.names(pod) and pod != view.leaving_pod]
    if not strays:
        return None
    return replace(leaving(view, strays, "StrayDriver"), actions=ends(view, strays))


def await_leaving(view: View) -> Step | None:
    """The driver before the one that the status names already: it ends its work first. If the spec changed once more, the next one has that."""
    pod, left = view.leaving_pod, view.driver.leaving
    if pod is None or left is None:
        return None
    step = replace(leaving(view, (pod,), left.why), actions=ends(view, (pod,)))
    if view.wanted is None or view.wanted.spec.suspend or not view.wanted.spec.replicas:
        return step
    outdated = view.driver.spec_hash != view.wanted.driver_hash
    return _restarting(view, replace(step, driver=replace(following(view), leaving=left) if outdated else None))


def redeploy(view: View) -> Step | None:
    """The spec changed in a way the running driver cannot take over: drain it, and name the one that follows with the new spec."""
    pod = view.driver_pod
    if pod is None or view.wanted is None or view.driver.spec_hash == view.wanted.driver_hash:
        return None
    left = Leaving(attempt=view.driver.attempt, pod=pod.name, uid=pod.uid, why="SpecChanged")
    driver = replace(following(view), leaving=left)
    step = progress(Phase.STARTING, left.why, "", DeletePod(pod.name, pod.uid))
    return replace(_restarting(view.with_status(replace(view.status, driver=driver)), step), driver=driver)


def await_executors(view: View) -> Step | None:
    """Executors of the last driver may still work; its pod's deletion takes them along."""
    if view.driver_pod is not None or not view.observed.executors:
        return None
    step, end = _restarting(view, leaving(view, view.observed.executors, "ExecutorsLeaving")), view.driver.exit
    if end is None or end.reason == "Drained":
        return step
    return replace(step, phase=Phase.STARTING if view.status.restarts.next_at is None else Phase.BACKING_OFF)


def confirm(view: View) -> Step | None:
    """A driver that the status names and nobody has seen: make it, now or again; or another one, if it became outdated."""
    if view.wanted is None or view.driver.pod is None or view.driver_pod is not None:
        return None
    if view.driver.spec_hash != view.wanted.driver_hash:
        return make(following(view))
    driver = replace(view.driver, forced=view.driver.forced or _given_up(view))
    return _restarting(view, make(driver))


def start(view: View) -> Step | None:
    """Nothing of an earlier driver is left: the next attempt is written down, then made."""
    if view.wanted is None or view.driver.pod is not None:
        return None
    return make(following(view))


def following(view: View) -> DriverStatus:
    """The next attempt, under a name that no other will have."""
    attempt = view.driver.attempt + 1
    return DriverStatus(
        attempt=attempt,
        pod=f"{view.resource.name}-driver-{attempt}",
        spec_hash=view.wanted.driver_hash if view.wanted else None,
        forced=_given_up(view),
        generation=view.driver.generation,
    )


def _given_up(view: View) -> bool:
    """Whether the user gave up the driver before the next one; then that one has to take the lease."""
    end, left = view.driver.exit, view.driver.leaving
    return (end is not None and end.reason == FORCED) or (left is not None and left.uid == view.resource.force)


def make(driver: DriverStatus) -> Step:
    """Written down first, if it is not yet."""
    return replace(progress(Phase.STARTING, "DriverStarting", UNHEARD.format(driver.pod), CreateDriver()), driver=driver)


def _restarting(view: View, step: Step) -> Step:
    """In the same words from the beginning until the next driver is there, so that one write tells all of it, unless something does not go well."""
    left = view.driver.leaving
    if left is None or step.reason == OVERDUE:
        return step
    return replace(step, phase=Phase.STARTING, reason=left.why, message=f"{left.pod} ends its work, then the next driver starts")


def drain(view: View, pod: Pod, why: str) -> Step:
    """Ask the driver to end its batch and go; its pod's own grace period says how long that may take."""
    if pod.gone_by is not None:
        return leaving(view, (pod,), why)
    step = progress(Phase.DRAINING, why, f"{pod.name} drains", DeletePod(pod.name, pod.uid))
    return replace(step, driver=replace(view.driver, stopping=why))


def leaving(view: View, pods: Sequence[Pod], why: str) -> Step:
    """Pods on their way out. Of one that is overdue the user is told how to give it up; nobody else may decide that it is dead."""
    late = next((pod for pod in pods if pod.gone_by and view.now >= pod.gone_by + LATE), None)
    if late is not None:
        given_up = late.uid if late.role == "driver" else late.owner
        text = f"{late.name} should be gone; is its node lost? To go on without it, annotate this resource: sluice.dev/force={given_up}"
        return Step(phase=Phase.DRAINING, reason=OVERDUE, message=text, stalled=True)
    due = [pod.gone_by + LATE for pod in pods if pod.gone_by]
    names = ", ".join(pod.name for pod in pods[:3])
    step = progress(Phase.DRAINING, why, f"waiting until {names} is gone")
    return replace(step, wake=min(due, default=None), due=max(due, default=None))


def ends(view: View, pods: Sequence[Pod]) -> tuple[Action, ...]:
    """Nobody asked them yet; those of another owner are left to the garbage collector."""
    return tuple(DeletePod(pod.name, pod.uid) for pod in pods if pod.owner == view.resource.uid and not pod.deleting)
