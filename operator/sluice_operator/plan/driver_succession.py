"""One driver after another: the last one ends its work, its executors too, and only then the next is made.

These are the rules of `plan.rules` about that, and their steps. The next driver is named in the status before the last one is asked to end, so
that one write reports the whole restart. It is created when nothing is left of the last one.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.names import END_REACHED
from sluice_operator.plan.finalizers import taken_off_by
from sluice_operator.plan.record import DISRUPTIONS, FORCED
from sluice_operator.plan.running import UNHEARD
from sluice_operator.state.actions import Action, CreateDriver, DeletePod
from sluice_operator.state.status import DriverStatus, Exit, Leaving, Phase, RestartStatus, StandbyStatus
from sluice_operator.state.view import Step, View, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice_operator.state.objects import Pod

LATE = timedelta(seconds=30)
FOLLOWS = "StandbyFollows"
OVERDUE, HELD = "DriverOverdue", "PodHeld"
LATER = {OVERDUE, HELD}
MAX_ATTEMPT = 999_999_999  # a name has room for nine digits; then from 1 again, when nothing of the last one is left


def clear_strays(view: View) -> Step | None:
    """Drivers that the status does not name: another leader's or an earlier epoch's. Those of this resource are deleted, others waited for."""
    strays = [pod for pod in view.observed.drivers if not view.names(pod) and pod not in (view.leaving_pod, view.standby_pod)]
    if not strays:
        return None
    return replace(leaving(view, strays, "StrayDriver"), actions=ends(view, strays))


def await_leaving(view: View) -> Step | None:
    """The status names the next driver, and the previous one still exists: wait for it. If the spec changes again, the next driver gets that."""
    pod, left = view.leaving_pod, view.driver.leaving
    if pod is None or left is None or _is_followed(view, pod):
        return None
    step = replace(leaving(view, (pod,), left.why), actions=ends(view, (pod,)))
    if view.wanted is None or view.wanted.spec.suspend or not view.wanted.spec.replicas:
        return step
    return _restarting(view, replace(step, driver=replace(renewed(view), leaving=left) if view.outdated and view.driver_pod is None else None))


def _is_followed(view: View, pod: Pod) -> bool:
    """Whether nothing waits for the previous driver, which may hang on a lost node: the next one stood by, and has the lease, or ends, or stops."""
    after = view.driver_pod
    if after is None:
        return False
    has_lease = after.report is not None and after.report.generation is not None
    return view.stopped or after.exit is not None or after.deleting or (has_lease and pod.deleting and view.outdated is None)


def hand_over(view: View, standby: StandbyStatus) -> Step | None:
    """The standby is ready, or has the lease: it is the driver from now on, and the former one ends its work. It takes a lease that is released."""
    pod = view.driver_pod
    if pod is None:
        return None
    left = Leaving(attempt=view.driver.attempt, pod=pod.name, uid=pod.uid, why=view.outdated or FOLLOWS)
    driver = replace(view.promoted(standby), leaving=left)
    step = progress(Phase.STARTING, left.why, "", *ends(view, (pod,)))
    step = _restarting(view.with_status(replace(view.status, driver=driver)), step)
    return replace(step, driver=driver, forget_standby=True)


def redeploy(view: View) -> Step | None:
    """The spec changed in a way that needs a restart, or the user asked for one: drain the driver, and name the next one, with the present spec."""
    pod, why = view.driver_pod, view.outdated
    if pod is None or why is None:
        return None
    left = Leaving(attempt=view.driver.attempt, pod=pod.name, uid=pod.uid, why=why)
    driver = replace(following(view), leaving=left)
    step = progress(Phase.STARTING, left.why, "", DeletePod(pod.name, pod.uid))
    return replace(_restarting(view.with_status(replace(view.status, driver=driver)), step), driver=driver)


def await_executors(view: View) -> Step | None:
    """Executors of the last driver may still work: wait. The garbage collector deletes them with the driver's pod.

    If that driver failed, reason and message still say why.
    """
    if view.driver_pod is not None or not view.observed.executors:
        return None
    step = _restarting(view, leaving(view, view.observed.executors, "ExecutorsLeaving"))
    end, restarts = view.driver.exit, view.status.restarts
    waits = Phase.STARTING if restarts.next_at is None else Phase.BACKING_OFF
    own, failure = (step.reason, step.message), (restarts.reason or "", f"{restarts.message or ''}; {step.message}")
    cases = (  # the first that holds; the phase; reason and message
        (end is None or end.reason in {"Drained", END_REACHED}, step.phase, own),
        (step.reason in LATER, waits, own),
        (restarts.reason is None, waits, own),
        (restarts.next_at is not None or _is_failure(end, restarts), waits, failure),
        (True, waits, own),
    )
    phase, (reason, message) = next((phase, words) for holds, phase, words in cases if holds)
    return replace(step, phase=phase, reason=reason, message=message)


def _is_failure(end: Exit | None, restarts: RestartStatus) -> bool:
    """Whether the last driver's own end is what the restarts name, and it was no disruption."""
    return end is not None and end.reason not in DISRUPTIONS and (restarts.reason, restarts.message) == (end.reason, end.message)


def confirm(view: View) -> Step | None:
    """The status names a driver that was not seen: create it. If the spec has changed since, name and create another one."""
    if view.wanted is None or view.driver.pod is None or view.driver_pod is not None:
        return None
    if view.outdated == "SpecChanged" or view.driver.pod != view.resource.driver_name(view.driver.attempt):
        return make(following(view))  # the name of another spec, or one that no operator gives
    driver = renewed(view)
    return _restarting(view, make(replace(driver, forced=driver.forced or _given_up(view))))


def renewed(view: View) -> DriverStatus:
    """The named driver, whose pod was not seen, as it is wanted now. A changed spec needs another name: the old pod may still be created.

    A restart does not: a driver that is yet to be made honours every request so far. So however often it is asked for, an attempt is made.
    """
    return following(view) if view.outdated == "SpecChanged" else replace(view.driver, restart=view.restart)


def start(view: View) -> Step | None:
    """No driver is left: name the next attempt in the status, then create it."""
    if view.wanted is None or view.driver.pod is not None:
        return None
    return make(following(view))


def following(view: View) -> DriverStatus:
    """The next attempt, under a name of its own."""
    last = max(view.driver.attempt, view.status.attempts or 0)
    attempt = last + 1 if 0 <= last < MAX_ATTEMPT else 1
    return DriverStatus(
        attempt=attempt,
        pod=view.resource.driver_name(attempt),
        spec_hash=view.wanted.driver_hash if view.wanted else None,
        restart=view.restart,
        forced=_given_up(view),
        generation=view.driver.generation,
        host=view.driver.host,  # its executors are waited for
    )


def _given_up(view: View) -> bool:
    """Whether the user gave up the driver before this one. Then this one takes the lease over."""
    end, left = view.driver.exit, view.driver.leaving
    return (end is not None and end.reason == FORCED) or (left is not None and left.uid == view.resource.force)


def make(driver: DriverStatus) -> Step:
    """The step that names the driver in the status, then creates it."""
    return replace(progress(Phase.STARTING, "DriverStarting", UNHEARD.format(driver.pod), CreateDriver()), driver=driver)


def _restarting(view: View, step: Step) -> Step:
    """Reason and message stay the same until the next driver is created: one write reports the whole restart. Not so if a driver is overdue."""
    left = view.driver.leaving
    if left is None or step.reason in LATER:
        return step
    then = f"{view.driver.pod} continues" if view.driver.uid else "the next driver starts"
    return replace(step, phase=Phase.STARTING, reason=left.why, message=f"{left.pod} finishes its work, then {then}")


def drain(view: View, pod: Pod, why: str) -> Step:
    """Delete the driver's pod: the driver ends its batch within the pod's grace period."""
    if pod.gone_by is not None:
        return leaving(view, (pod,), why)
    step = progress(Phase.DRAINING, why, f"{pod.name} drains", DeletePod(pod.name, pod.uid))
    return replace(step, driver=replace(view.driver, stopping=why))


def stop_driver(view: View, why: str) -> Step | None:
    """Drain the driver, and wait for every pod of it. None when none is left that runs, and the status names none."""
    if (pod := view.driver_pod) is not None:
        step = drain(view, pod, why)
        return replace(step, actions=(*ends(view, (view.standby_pod,)), *step.actions)) if view.standby_pod else step
    if view.observed.drivers or view.observed.executors:
        step = leaving(view, (*view.observed.drivers, *view.observed.executors), why)
        return replace(step, actions=ends(view, view.observed.drivers))
    if view.driver.pod is not None:  # named in the status, never created
        return replace(progress(Phase.DRAINING, why, ""), driver=replace(view.driver, pod=None, leaving=None), wake=view.now)
    return None


def leaving(view: View, pods: Sequence[Pod], why: str) -> Step:
    """Wait for pods that are being deleted. If one is overdue, the message says how to give it up: only the user may decide that it is dead."""
    if (late := belated(view, pods)) is not None:
        return late
    due = [pod.gone_by + LATE for pod in pods if pod.gone_by]
    names = ", ".join(pod.name for pod in pods[:3])
    step = progress(Phase.DRAINING, why, f"waiting until {names} is gone")
    return replace(step, wake=min(due, default=None), due=max(due, default=None))


def belated(view: View, pods: Sequence[Pod]) -> Step | None:
    """How the first of these that should be gone is given up. None: none of them is overdue."""
    return next((overdue(view, pod) for pod in pods if pod.gone_by and view.now >= pod.gone_by + LATE), None)


def overdue(view: View, pod: Pod) -> Step:
    """A pod that should be gone. One whose node is out of the question is kept by finalizers alone, and the annotation would not help."""
    taken_off = taken_off_by(view.resource.namespace, "pod", pod)
    if pod.forced and taken_off:
        text = f"{pod.name} is deleted, but finalizers of other programs keep it; {taken_off}"
        return Step(phase=Phase.DRAINING, reason=HELD, message=text, stalled=True)
    given_up = pod.uid if pod.role == "driver" else pod.owner
    text = f"{pod.name} should have stopped; its node may be lost. The annotation sluice.dev/force={given_up} removes it"
    return Step(phase=Phase.DRAINING, reason=OVERDUE, message=f"{text}; then {taken_off}" if taken_off else text, stalled=True)


def ends(view: View, pods: Sequence[Pod]) -> tuple[Action, ...]:
    """Deletions of the pods that are not being deleted yet. Pods of another owner are left to the garbage collector."""
    return tuple(DeletePod(pod.name, pod.uid) for pod in pods if pod.owner == view.resource.uid and not pod.deleting)
