"""The condition StandbyReady: whether a standby could continue, and what keeps it from that. No action is decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.names import clock
from sluice_operator.plan import failover
from sluice_operator.plan.advice import advised
from sluice_operator.plan.condition_value import ConditionValue
from sluice_operator.plan.driver_succession import belated
from sluice_operator.plan.standby_terms import STAND, may_follow, why_stopped
from sluice_operator.state.status import StandbyState

if TYPE_CHECKING:
    from sluice_operator.state.status import StandbyStatus
    from sluice_operator.state.view import Step, View


def standby_ready(view: View, _step: Step) -> ConditionValue | None:
    """Present while a rollout has a standby, and until the next rollout if one was given up. True from the hand-over on.

    With `standby: Always` it is present as long as something shall run: a consumer without a standby is not what the spec asks for. So it is False
    again once the one that follows works, whatever holds the pod of the former driver.
    """
    one, pod = view.status.standby, view.standby_pod
    if one is None:
        return _without_standby(view)
    if pod is not None and (late := belated(view, (pod,))) is not None:
        return ConditionValue("False", late.reason, late.message)  # the advice, `kubectl sluice force`, is about the driver that works
    if one.state in STAND and not may_follow(view, one):
        asked = view.has_failover or (view.stands_by and view.outdated is not None)
        return ConditionValue("False", "StandbyAwaited", f"no standby: {one.pod} is stopped: {why_stopped(view, one)}") if asked else None
    if one.state is StandbyState.READY:
        return ConditionValue("True", "Ready", f"{one.pod} stands by behind {view.driver.pod}{_refused(view, one)}")
    return _gets_ready(view, one) if one.state is StandbyState.STARTING else _is_not_ready(view, one)


def _without_standby(view: View) -> ConditionValue | None:
    left = view.driver.leaving
    works = view.driver_pod is not None and view.driver_pod.report is not None and view.driver_pod.report.holds_all
    follows = left is not None and view.driver.uid is not None and not (works and view.has_failover)
    if follows and left:
        return ConditionValue("True", "Ready", f"{view.driver.pod} is ready, and follows {left.pod}")
    why = failover.awaited(view) or "the driver gets one"
    return ConditionValue("False", "StandbyAwaited", f"no standby: {why}") if view.has_failover else None


def _gets_ready(view: View, one: StandbyStatus) -> ConditionValue:
    pod = view.standby_pod
    trouble = pod.trouble if pod else view.observed.refusal
    if trouble is not None:
        return ConditionValue("False", trouble.reason, advised(trouble.reason, f"{one.pod}: {trouble.message}", view.resource.name))
    until = " until then" if view.outdated is not None else ""
    does = "ends; the driver continues" if pod and pod.deleting else f"gets ready; the driver continues{until}"
    return ConditionValue("False", "StandbyStarting", f"{one.pod} {does}")


def _refused(view: View, one: StandbyStatus) -> str:
    """What the API server answered to a change of a standby that is there: its number of executors, or its deletion. It is repeated."""
    refusal, pod = view.observed.refusal, view.standby_pod
    if refusal is None or not view.observed.standby_refused or pod is None or pod.deleting:
        return ""
    owed = one.state is StandbyState.BACKING_OFF or pod.target != str(view.executors)
    return f"; {advised(refusal.reason, f'a change of it was refused: {refusal.message}', view.resource.name)}" if owed else ""


def _is_not_ready(view: View, one: StandbyStatus) -> ConditionValue:
    """It is silent, was given up, or has ended or will."""
    pod = view.standby_pod
    again = f"; the next one starts at {clock(one.next_at, view.now)}" if one.next_at and view.now < one.next_at else ""
    does = "ends" if pod is not None and pod.exit is None else "ended"
    texts = {
        StandbyState.SILENT: f"{one.message}; it is replaced if that lasts",
        StandbyState.GIVEN_UP: f"the rollout was made as Recreate: {one.message}",
        StandbyState.BACKING_OFF: f"{one.pod} {does}, and the driver continues: {one.message}{again}{_refused(view, one)}",
    }
    return ConditionValue("False", one.reason, advised(one.reason, texts[one.state], view.resource.name))
