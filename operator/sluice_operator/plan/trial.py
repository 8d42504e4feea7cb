"""`spec.rollout.trial`: a new version has to commit batches, or the proven one comes back (docs/architecture.md, "Trials"). Pure.

Here is what becomes of a trial. How a version does is judged in `trial_evidence`. A rollback changes nothing but `View.wanted`, so every other rule
works as ever.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.plan import position
from sluice_operator.plan.trial_evidence import TrialVerdict, committed, followed, gone_with, is_good, led, problem, searching, speed_of, terms_of
from sluice_operator.state.status import PositionState, ProvenStatus, Status, TrialState, TrialStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.resource.changes import DesiredSpec
    from sluice_operator.state.view import Step, View

LOOK = timedelta(seconds=15)  # from one look at a version that is judged to the next
FORMER_FAILS = "FormerFails"


def note(view: View) -> Status:
    """The status with what the view shows of the trial. It is written before anything follows from it."""
    status, asked = view.status, view.asked
    if asked is None or view.resource.deleting:
        return status
    if terms_of(view) is None:
        return replace(status, trial=None, proven=None, proven_spec=None)
    if status.proven is not None and asked.is_hash(status.proven.hash):
        return replace(status, trial=None, proven=replace(status.proven, position=_moved(view)), proven_spec=asked.version)
    trial = status.trial if status.trial is not None and view.is_tried(status.trial) else _begun(view, asked)
    return STATES[trial.state](view, asked, trial)


def awaited(view: View, step: Step) -> Step:
    """The step, with a look soon at a version that is judged, whatever is reported until then."""
    trial = view.status.trial
    if trial is None or trial.working_since is None:
        return step
    due = view.now + LOOK
    return replace(step, wake=min(step.wake or due, due), look_by=min(step.look_by or due, due))


def _begun(view: View, asked: DesiredSpec) -> TrialStatus:
    """The trial of a version that is new here, or is asked for again."""
    before, why = view.status.stream, no_way_back(view)
    known = before is not None and view.former is not None and view.former.is_hash(view.driver.spec_hash)
    trial = TrialStatus(
        hash=asked.driver_hash,
        state=TrialState.RUNNING,
        since=view.now,
        restart=view.resource.restart,
        after=view.driver.attempt,
        speed=speed_of(before) if known and before else None,
        executors=view.status.replicas,
    )
    return trial if why is None else _at(view, trial, TrialState.FORWARD, why)


def no_way_back(view: View) -> TrialVerdict | None:
    """Why the proven version cannot come back. None: it can."""
    status, asked, former = view.status, view.asked, view.former
    if status.proven is None or status.proven_spec is None:
        return TrialVerdict("NoneProven", "no version has passed a trial yet")
    if asked is None or former is None:
        return TrialVerdict("NotValid", f"version {status.proven.hash} does not fit the rest of the spec, or the operator's policy refuses it")
    if former.spec.stream.options != asked.spec.stream.options:
        return TrialVerdict("StreamChanged", f"spec.stream differs from that of version {status.proven.hash}")
    if position.asked(view) is not None or _moved(view) != status.proven.position:
        return TrialVerdict("PositionsMoved", f"spec.position moves the positions of version {status.proven.hash}")
    failure = _own_failure(view, former)
    return TrialVerdict(FORMER_FAILS, f"version {status.proven.hash} fails itself: {failure}") if failure is not None else None


def _own_failure(view: View, former: DesiredSpec) -> str | None:
    """Words of a failure of the proven version. Right after a rollback, the failures that are counted are those of another one."""
    if not former.is_hash(view.driver.spec_hash):
        return None
    if (verdict := searching(view, former)) is not None:
        return verdict.message
    before = view.status.trial
    of_another = before is not None and before.state is TrialState.ROLLED_BACK and not before.passed
    fails = view.status.restarts.count and not of_another and not _works(view)
    return view.status.restarts.message or view.status.restarts.reason or "" if fails else None


def _works(view: View) -> bool:
    pod = view.driver_pod
    return pod is not None and pod.exit is None and pod.report is not None and pod.report.holds_all


def _moved(view: View) -> str | None:
    move = view.status.position
    if move is None:
        return None
    return move.id if move.state is PositionState.COMPLETE else next(iter(move.earlier), None)


def _at(view: View, trial: TrialStatus, state: TrialState, why: TrialVerdict) -> TrialStatus:
    """The trial in another state. What is judged from now on begins with the next driver."""
    fresh = replace(trial, base=None, worked=0, working_since=None, passed=False, after=view.driver.attempt)
    return replace(fresh, state=state, reason=why.reason, message=why.message, since=view.now)


def _running(view: View, asked: DesiredSpec, trial: TrialStatus) -> Status:
    trial = led(view, asked, followed(view, asked, replace(trial, restart=view.resource.restart or trial.restart)))
    if is_good(view, asked, trial):
        return _proven(view, asked)
    if (why := problem(view, asked, trial)) is not None:
        stuck = no_way_back(view)
        trial = _at(view, trial, TrialState.ROLLED_BACK, why) if stuck is None else _at(view, trial, TrialState.FORWARD, stuck)
    return replace(view.status, trial=trial)


def _rolled_back(view: View, _asked: DesiredSpec, trial: TrialStatus) -> Status:
    """Until the proven version has got further than the new one did, it may fail as that one. Then the new version is not to blame.

    One that failed with every shard failed at a batch, so the proven version has to commit one. Of another it is enough to have every shard.
    """
    former = view.former
    if former is None:
        return replace(view.status, trial=_at(view, trial, TrialState.FORWARD, no_way_back(view) or TrialVerdict("NotValid", "")))
    if trial.passed:
        return replace(view.status, trial=trial)
    trial = followed(view, former, trial)
    if committed(view, former, trial) or (trial.led_from is None and trial.base is not None):
        trial = replace(trial, passed=True, working_since=None)
    elif (why := problem(view, former, trial) or gone_with(view, former, trial)) is not None:
        text = f"the version before fails as well, so this one may not be to blame: {why.message}; this one failed with: {trial.message}"
        trial = _at(view, trial, TrialState.FORWARD, TrialVerdict(FORMER_FAILS, text))
    return replace(view.status, trial=trial)


def _forward(view: View, asked: DesiredSpec, trial: TrialStatus) -> Status:
    """There is nothing to go back to. The version is proven as any other."""
    trial = replace(followed(view, asked, replace(trial, speed=None)), worked=0, working_since=None)
    return _proven(view, asked) if is_good(view, asked, trial) else replace(view.status, trial=trial)


def _proven(view: View, asked: DesiredSpec) -> Status:
    proven = ProvenStatus(hash=asked.driver_hash, since=view.now, position=_moved(view))
    return replace(view.status, trial=None, proven=proven, proven_spec=asked.version)


STATES: dict[TrialState, Callable[[View, DesiredSpec, TrialStatus], Status]] = {
    TrialState.RUNNING: _running,
    TrialState.ROLLED_BACK: _rolled_back,
    TrialState.FORWARD: _forward,
}
