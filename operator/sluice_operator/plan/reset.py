"""The rule of `spec.position`: no driver while positions are moved. It drains the driver, and decides on tries of the Job. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.names import clock
from sluice_operator.plan import jobs, migration, position
from sluice_operator.plan.driver_succession import stop_driver
from sluice_operator.state.actions import CreateResetJob
from sluice_operator.state.status import Phase, PositionState
from sluice_operator.state.view import Step, progress

if TYPE_CHECKING:
    from sluice_operator.state.status import PositionStatus
    from sluice_operator.state.view import View

RESETTING = "Resetting"
WAITS = {PositionState.HELD: "LeaseHeld", PositionState.LOST: "ResetLost", PositionState.FAILING: "ResetFailing"}


def reset(view: View) -> Step | None:
    """`spec.position` names a move that was not carried out: drain the driver, and move the positions by a Job. No driver before its end."""
    wanted, before = position.asked(view), view.status.position
    if view.wanted is None:
        return None
    if wanted is None:
        return _given_up(view)
    if before is None or not position.is_present(view):
        return _given_up(view) or _new_try(view, wanted)
    if why := position.overdue(view, before):
        return _left(view, before, PositionState.REFUSED, f"{why}; {position.LEFT}")
    step, end = _wanted(view, before, wanted), position.end_of(view, before)
    return step if end is None or end <= view.now else replace(step, wake=min(step.wake or end, end))


def _wanted(view: View, before: PositionStatus, wanted: str) -> Step:
    if view.wanted is not None and before.state is PositionState.RUNNING and before.spec_hash == view.wanted.reset_job_hash:
        return stop_driver(view, RESETTING) or _running(view, before)
    waits = before.state in WAITS and before.next_at is not None and view.now < before.next_at and not position.is_retried(view, before)
    return stop_driver(view, RESETTING) or _waiting(view, before) if waits else _new_try(view, wanted)


def _given_up(view: View) -> Step | None:
    """The spec asks for no move any more. One that is under way is stopped before a driver starts; if its plan was named, the driver completes it."""
    before = view.status.position
    overdue = before is not None and before.state is PositionState.REFUSED and before.finished_at is None
    if before is None or (before.state in {*position.OVER, PositionState.STOPPED} and not overdue):
        return None
    if waiting := jobs.stop(view, Phase.DRAINING, RESETTING):
        return waiting
    return None if overdue else _left(view, before, PositionState.STOPPED, "spec.position was changed while it was under way")


def _left(view: View, before: PositionStatus, state: PositionState, why: str) -> Step:
    """The move is given up; a Job that is left is deleted before a driver starts."""
    left = replace(before, state=state, message=why, next_at=None, finished_at=None)
    step = progress(Phase.DRAINING, RESETTING, f"the move {before.id} was given up: {why}")
    return position.leave(view, replace(step, wake=view.now), left)


def _new_try(view: View, wanted: str) -> Step:
    if waiting := stop_driver(view, RESETTING) or jobs.clear(view, Phase.DRAINING, RESETTING):
        return waiting
    made, before = position.following(view, wanted), view.status.position
    replaced = before is not None and not position.is_present(view) and before.state not in position.OVER
    step = _running(view, made)
    return position.leave(view, step, made) if replaced else replace(step, position=made)


def _running(view: View, move: PositionStatus) -> Step:
    if trouble := jobs.trouble(view, move):
        return progress(Phase.DRAINING, trouble[0], f"the pod that moves the positions cannot start: {trouble[1]}")
    step = progress(Phase.DRAINING, RESETTING, f"Job {move.job} moves the positions")
    if move.uid is not None or jobs.find(view, move) is not None:
        return replace(step, wake=jobs.wake(view, move))
    return jobs.clear(view, Phase.DRAINING, RESETTING) or replace(step, actions=(CreateResetJob(),))


def _waiting(view: View, before: PositionStatus) -> Step:
    text = f"{before.message}; next try at {clock(before.next_at, view.now) if before.next_at else 'once'}"
    return replace(progress(Phase.DRAINING, WAITS[before.state], text), wake=before.next_at)


def clear_jobs(view: View) -> Step | None:
    """Jobs that the status does not name: a late leader's, or of what is not wanted any more. They are deleted first.

    So is a Job that counts as ended while an injected container keeps its pod.
    """
    strays = [job for job in view.observed.jobs if job.owner == view.resource.uid and not _is_named(view, job.name, active=job.state == "Active")]
    if not strays:
        return None
    return progress(Phase.PENDING, "StrayJob", f"waiting until {strays[0].name} is gone{jobs.kept(view, strays)}", *jobs.deletions(view, strays))


def _is_named(view: View, name: str, *, active: bool) -> bool:
    """Whether a Job is that of the last try, and has ended if that has."""
    gate, move = view.status.migration, view.status.position
    named = [(gate.job, gate.state in migration.JUDGED)] if gate else []
    named += [(move.job, move.state in position.JUDGED)] if move else []
    return any(name == job and not (over and active) for job, over in named)
