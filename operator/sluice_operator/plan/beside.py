"""A driver that works on, and what is beside it: its standby, or what an earlier driver left. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.plan.autoscale import decide_scale, next_look
from sluice_operator.plan.driver_succession import LATE, belated, ends
from sluice_operator.plan.running import STALE, running
from sluice_operator.state.actions import Action, Retarget
from sluice_operator.state.view import NEVER, Step, View

if TYPE_CHECKING:
    from sluice_operator.state.objects import Pod


def beside(view: View, what: str, *actions: Action) -> Step:
    """The driver works on, and is scaled as ever: what a standby does concerns no batch. The number comes first, for a standby may be refused.

    Until a rollout is done the resource is progressing. A standby for failover changes nothing about that.
    """
    step = scaled(view, running(view))
    waited = tuple(pod for pod in (view.standby_pod, *others(view)) if pod is not None)
    late, due = belated(view, waited), min((pod.gone_by + LATE for pod in waited if pod.gone_by), default=None)
    text, stalled = (what, step.stalled) if late is None else (late.message, True)
    going = not stalled and (view.outdated is not None or step.progressing)
    step = replace(step, message=f"{step.message}; {text}", stalled=stalled, progressing=going, actions=(*step.actions, *actions))
    return replace(step, wake=min(step.wake or due, due)) if due is not None and view.now < due else step


def scaled(view: View, step: Step) -> Step:
    """And the driver is given the number of executors that is wanted, or that `spec.autoscale` comes to."""
    pod, before = view.driver_pod, view.status.autoscale
    if pod is None or view.wanted is None or view.status.draining:
        return step
    if view.wanted.spec.executor.in_driver and view.outdated is not None:
        return step  # the one executor will be the next driver: this one keeps its own until then
    if pod.target != str(view.executors):
        return replace(step, progressing=True, actions=(Retarget(pod.name, pod.uid, view.executors),))
    after = decide_scale(view)
    if before is None or after is None:
        return step
    step = replace(step, autoscale=after, wake=min(step.wake or NEVER, next_look(view, after)))
    if after.replicas == before.replicas:
        return step
    return replace(step, progressing=True, actions=(Retarget(pod.name, pod.uid, after.replicas),))


def others(view: View) -> tuple[Pod, ...]:
    """Executors of neither the driver nor its standby."""
    return tuple(pod for pod in view.own_executors if pod.owner != view.driver.uid)


def ended(view: View) -> tuple[Action, ...]:
    """The deletion of the standby's pod, unless it is under way."""
    return ends(view, (view.standby_pod,)) if view.standby_pod else ()


def is_ready(view: View, pod: Pod) -> bool:
    """Whether it has said lately that it stands by, or works already: a lease that expired was free to take.

    It may have said so long ago, while the resource was paused, and its node is lost since.
    """
    usable = pod.report is not None and not pod.deleting and pod.exit is None and view.now - (pod.reported_at or view.now) < STALE
    return usable and pod.report is not None and (pod.report.stands_by or has_lease(pod))


def has_lease(pod: Pod) -> bool:
    """Whether it says that it works: it took a lease that was free."""
    return pod.report is not None and pod.report.generation is not None
