"""`spec.rollout.strategy: Standby`: the next driver starts beside the present one, which ends its work when that one is ready. Pure.

The lease alone says which of the two works (docs/architecture.md, "Rollouts"). The operator names one driver and one standby, and makes no third.
What a standby does between rollouts is in `failover`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.plan import failover
from sluice_operator.plan.beside import beside, ended, has_lease, is_ready, others
from sluice_operator.plan.driver_succession import FOLLOWS, ends, following, hand_over, leaving
from sluice_operator.plan.record import backed_off
from sluice_operator.plan.standby_terms import SILENT, STAND, TOO_SLOW, may_follow
from sluice_operator.state.actions import Action, CreateStandby
from sluice_operator.state.status import Phase, StandbyState, StandbyStatus
from sluice_operator.state.view import Step, View, progress

if TYPE_CHECKING:
    from datetime import timedelta

    from sluice_operator.state.objects import Pod, Trouble

NO_ROOM = "StandbyWithoutRoom"


def stand_by(view: View) -> Step | None:
    """A standby, for a rollout or for failover. None: there is none, or this rollout is made as `Recreate`."""
    standby = view.status.standby
    if standby is None:
        return _name(view, 1) if _begins(view) else None
    if view.driver_pod is None:
        return _follow(view, standby)
    if not view.is_meant(standby):
        if _works_as_wanted(view, standby):
            return hand_over(view, standby)
        return beside(view, f"{standby.pod} is not wanted any more", *ended(view)) if view.standby_pod else _anew(view, standby)
    return STATES[standby.state](view, standby)


def _works_as_wanted(view: View, standby: StandbyStatus) -> bool:
    """Whether a standby that nobody asks for any more is the only one that works: it has the lease, and runs what the spec asks for."""
    pod, fits = view.standby_pod, view.wanted is not None and view.wanted.is_hash(standby.spec_hash) and standby.restart == view.restart
    return fits and view.outdated is None and not view.on_trial and pod is not None and is_ready(view, pod) and has_lease(pod)


def _anew(view: View, standby: StandbyStatus) -> Step | None:
    """What is left is the memory of one that was given up. Another request begins again, and so does what stands behind the next driver."""
    return _name(view, 1) if _begins(view) and standby.state is StandbyState.GIVEN_UP else None


def _begins(view: View) -> bool:
    """Whether a standby is wanted: the driver works, and another one shall follow it, now or when it is lost."""
    pod = view.driver_pod
    if pod is None or pod.report is None or not pod.report.holds_all or not view.keeps_table:
        return False
    return view.stands_by if view.outdated is not None else view.has_failover and failover.awaited(view) is None


def _name(view: View, tries: int) -> Step:
    """Name the next attempt as the standby, then create it. Executors of an earlier driver are waited for: their node may be lost."""
    if left := others(view):
        return beside(view, f"{left[0].name} of an earlier driver is waited for")
    driver = following(view)
    standby = StandbyStatus(
        attempt=driver.attempt, pod=driver.pod or "", spec_hash=driver.spec_hash or "", restart=driver.restart, since=view.now, tries=tries
    )
    return replace(beside(view, f"{standby.pod} starts beside it", CreateStandby()), standby=standby)


def _starting(view: View, standby: StandbyStatus) -> Step | None:
    """Create it, wait for it, give it up, or let it follow."""
    pod, due = view.standby_pod, standby.since + view.ready_time
    if pod is not None and is_ready(view, pod):
        return failover.follow_or_stay(view, standby)
    lacking = view.observed.refusal if pod is None else pod.trouble
    if view.now >= due and (why := _hopeless(pod, lacking, view.ready_time)) is not None:
        return _given_up_on(view, standby, *why)
    step = beside(view, f"{standby.pod} gets ready to follow", *(() if pod or others(view) else (CreateStandby(),)))
    return step if view.now >= due else replace(step, wake=min(step.wake or due, due))


def _given_up_on(view: View, standby: StandbyStatus, reason: str, message: str) -> Step:
    """A rollout continues as `Recreate`. Between rollouts nothing waits: without room it stays, and its time begins again."""
    if view.outdated is not None:
        after = replace(standby, state=StandbyState.GIVEN_UP, reason=reason, message=message)
        return replace(beside(view, f"{standby.pod} is given up", *ended(view)), standby=after)
    if reason == TOO_SLOW:
        return replace(beside(view, f"{standby.pod} is replaced", *ended(view)), standby=backed_off(view, standby, reason, message))
    create = () if view.standby_pod or others(view) else (CreateStandby(),)
    step = replace(beside(view, f"{standby.pod} finds no room", *create), standby=replace(standby, since=view.now))
    return replace(step, wake=min(step.wake or view.now + view.ready_time, view.now + view.ready_time))


def _hopeless(pod: Pod | None, lacking: Trouble | None, time: timedelta) -> tuple[str, str] | None:
    """Why waiting longer would be in vain, and recreating would not: there is no room for two, or its start takes too long."""
    if lacking is not None:
        return (NO_ROOM, f"there is no room for a second driver: {lacking.message}") if lacking.no_room else None
    slow = pod is not None and not pod.deleting
    return (TOO_SLOW, f"{pod.name} was not ready within {time.total_seconds():.0f} s (spec.rollout.readySeconds)") if slow and pod else None


def _given_up(view: View, standby: StandbyStatus) -> Step | None:
    """The rollout continues as `Recreate` when the pod is gone. After it, one for failover begins again."""
    if view.standby_pod:
        return beside(view, f"{standby.pod} is given up", *ended(view))
    return _name(view, 1) if view.outdated is None and _begins(view) else None


def _backing_off(view: View, standby: StandbyStatus) -> Step:
    """It failed. The driver works on, and another standby is made after a pause."""
    due = standby.next_at or view.now
    if view.standby_pod is None and view.now >= due and (view.outdated is not None or _begins(view)):
        return _name(view, standby.tries + 1)
    does = "ends" if view.standby_pod is not None and view.standby_pod.exit is None else "ended"
    step = beside(view, f"{standby.pod} {does}: {standby.message}", *ended(view))
    return replace(step, wake=min(step.wake or due, due)) if view.now < due else step


STATES = {
    StandbyState.STARTING: _starting,
    StandbyState.READY: failover.stand,
    StandbyState.SILENT: failover.stay_silent,
    StandbyState.GIVEN_UP: _given_up,
    StandbyState.BACKING_OFF: _backing_off,
}


def _follow(view: View, standby: StandbyStatus) -> Step | None:
    """The driver is gone. A standby that stands there is the driver; any other is ended before one is made."""
    pod = view.standby_pod
    if pod is None:
        return None
    stands = standby.state is StandbyState.STARTING or is_ready(view, pod)
    usable = stands and standby.state in STAND and not pod.deleting and pod.exit is None and view.driver.pod is None
    if not (usable and view.is_meant(standby)):
        lost = backed_off(view, standby, SILENT, standby.message) if standby.state is StandbyState.SILENT and may_follow(view, standby) else None
        return replace(leaving(view, (pod,), FOLLOWS), standby=lost, actions=ends(view, (pod,)))
    step = progress(Phase.STARTING, FOLLOWS, f"{pod.name} follows: it takes the lease when that is free")
    return replace(step, driver=view.promoted(standby), forget_standby=True, wake=view.now)


def stand_in(view: View) -> Step | None:
    """The driver is asked to end, and hangs perhaps: a standby that is ready follows it. None: there is none."""
    standby, pod = view.status.standby, view.standby_pod
    return hand_over(view, standby) if standby is not None and pod is not None and is_ready(view, pod) and may_follow(view, standby) else None


def unwanted(view: View) -> tuple[Action, ...]:
    """The deletion of a standby that may not follow a driver which is asked to end: it would take the lease, though nothing shall run."""
    standby = view.status.standby
    return () if standby is None or may_follow(view, standby) else ended(view)
