"""`spec.rollout.standby: Always`: a standby stays behind the driver, and continues when that is lost (docs/architecture.md). Pure.

It takes an expired lease without being asked. The operator notices, names it as the driver, and makes the next one. What happens to a standby
that is not there yet, or fails, is in `standby`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.names import counted
from sluice_operator.plan.beside import beside, ended, has_lease, is_ready, others
from sluice_operator.plan.driver_succession import hand_over
from sluice_operator.plan.record import backed_off, tries_of
from sluice_operator.plan.running import STALE
from sluice_operator.plan.standby_terms import SILENT
from sluice_operator.state.actions import Retarget
from sluice_operator.state.status import StandbyState, StandbyStatus

if TYPE_CHECKING:
    from sluice_operator.state.view import Step, View

FAILURES = 1  # of a series, after which a driver still gets a standby: with more it has to run for `resetAfterSeconds` first


def awaited(view: View) -> str | None:
    """Why the driver has no standby for failover now, and which event ends that. None: one may be made."""
    pod, trial = view.driver_pod, view.status.trial
    works = pod is not None and pod.report is not None and pod.report.holds_all and not pod.deleting and pod.exit is None
    left = tuple(each for each in (*view.observed.drivers, *others(view)) if each not in (pod, view.standby_pod))
    reset = view.patience.reset_after_seconds
    failed = f"drivers fail one after the other; the present one gets a standby after {reset} s of work (spec.restart.resetAfterSeconds)"
    waits = f"waiting until {counted(len(left), 'pod')} of an earlier driver is gone: {left[0].name}" if left else ""
    cases = (  # the first that holds, and its words
        (view.on_trial and trial is not None, f"version {trial.hash if trial else ''} is on trial, and a version has a standby when it is proven"),
        (not works, "the driver gets a standby when it holds every shard"),
        (view.status.restarts.count > FAILURES, failed),
        (bool(left), waits),
    )
    return next((words for holds, words in cases if holds), None)


def stand(view: View, standby: StandbyStatus) -> Step | None:
    """It stands behind the driver. If it has the lease, it is the driver; if it says nothing any more, it may be lost."""
    pod = view.standby_pod
    if pod is None:
        return None  # and its end was noted
    if is_ready(view, pod):
        return follow_or_stay(view, standby)
    why = "ends" if pod.deleting else "reports no longer that it is ready"
    lost = replace(standby, state=StandbyState.SILENT, reason=SILENT, message=f"{pod.name} {why}", since=view.now, tries=tries_of(view, standby))
    return replace(beside(view, lost.message), standby=lost, wake=view.now + view.ready_time)


def stay_silent(view: View, standby: StandbyStatus) -> Step | None:
    """It may come back. If it does not, it is replaced: its credentials may have expired, or its node is lost."""
    pod, due = view.standby_pod, standby.since + view.ready_time
    if pod is None:
        return None
    if is_ready(view, pod):
        return follow_or_stay(view, standby)
    if view.now < due:
        step = beside(view, standby.message)
        return replace(step, wake=min(step.wake or due, due))
    return replace(beside(view, f"{pod.name} is replaced", *ended(view)), standby=backed_off(view, standby, SILENT, standby.message))


def follow_or_stay(view: View, standby: StandbyStatus) -> Step | None:
    """A standby that is ready, or works already."""
    pod = view.standby_pod
    if pod is None or view.outdated is not None or has_lease(pod):
        return hand_over(view, standby)
    if standby.state is not StandbyState.READY:
        standby = replace(standby, state=StandbyState.READY, reason="", message="", since=view.now)
    due = (pod.reported_at or view.now) + STALE
    step = beside(view, f"{pod.name} stands by")
    number = step.autoscale.replicas if step.autoscale else view.executors  # it has as many as the driver when it continues
    also = () if pod.target == str(number) else (Retarget(pod.name, pod.uid, number),)
    return replace(step, standby=standby, actions=(*step.actions, *also), wake=min(step.wake or due, due))
