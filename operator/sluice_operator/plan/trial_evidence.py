"""How a version does that is on trial: what it committed, how long it has worked, and whether it failed. Pure.

Only its own faults count. A driver that is evicted, drained or lost, that finds the lease held, or whose `process` raises NotNow, says nothing of its
version. Reports are a tenant's: whatever they say, they decide about that tenant's version only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.names import END_REACHED
from sluice_operator.plan.record import DISRUPTIONS, SAID_SO
from sluice_operator.plan.running import STALE, trouble_of_executors
from sluice_operator.plan.standby_terms import TOO_SLOW
from sluice_operator.state.status import StandbyState
from sluice_operator.state.view import RAISING

if TYPE_CHECKING:
    from sluice_operator.resource.changes import DesiredSpec
    from sluice_operator.state.objects import Pod, Report, Trouble
    from sluice_operator.state.status import Exit, StreamStatus, TrialStatus
    from sluice_operator.state.view import View

FOLD = timedelta(seconds=60)  # of work, until it is written down
LONGEST = timedelta(seconds=120)  # that count between two looks: no operator may have worked in between
GONE = 60  # seconds of work until a proven version that names what is not there counts as failed
MISCONFIGURED = frozenset({"CreateContainerConfigError", "InvalidImageName"})  # what passes only if somebody acts, in the kubelet's words
SETTLED = 90  # seconds of work with every shard, until a driver's figures are those of its version
FULL = 0.9  # the busy share from which on batches follow each other
OF_AWS = frozenset({"ServiceUnavailable", "LostRace", "LeaseLost"})  # Kinesis or DynamoDB did not answer in time
FAULTLESS = DISRUPTIONS | OF_AWS | {"LeaseHeld", "Held", "Fenced", "NotNow", END_REACHED}


class TrialVerdict(NamedTuple):
    """One word, and the words for a person."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class TrialTerms:
    """`spec.rollout.trial`: batches, seconds of work, and how many times slower."""

    batches: int
    seconds: int
    max_slowdown: float | None = None


def terms_of(view: View) -> TrialTerms | None:
    """`spec.rollout.trial`, if it is set."""
    rollout = view.asked.spec.rollout if view.asked else None
    given = rollout.trial if rollout else None
    return TrialTerms(given.batches, given.seconds, given.max_slowdown) if given else None


def speed_of(figures: StreamStatus | Report) -> float | None:
    """Records per second of work; None: not known, or no driver measures that."""
    rate, busy = figures.records_per_second, figures.busy
    speed = rate / busy if rate is not None and busy else -1.0
    return speed if 0 <= speed < math.inf else None


def committed(view: View, version: DesiredSpec, trial: TrialStatus) -> int:
    """Batches that drivers of the version have committed since its first report. The report of one that has ended counts, too."""
    report = _report(view, version)
    if report is None or report.batch is None or trial.base is None or not (report.holds_all or report.phase == "Draining"):
        return 0
    return report.batch - trial.base


def followed(view: View, version: DesiredSpec, trial: TrialStatus) -> TrialStatus:
    """The trial with what is seen now: the batch that it begins after, and its seconds of work."""
    report = _report(view, version)
    if trial.base is None and report is not None and report.holds_all:
        trial = replace(trial, base=report.batch)
    counts, since = _is_working(view, version), trial.working_since
    if since is None:
        return replace(trial, working_since=view.now) if counts else trial
    if counts and view.now - since < FOLD:
        return trial
    return replace(trial, worked=worked(view, trial), working_since=view.now if counts else None)


def worked(view: View, trial: TrialStatus) -> int:
    """Seconds of work so far."""
    since = trial.working_since
    return trial.worked + (int(min(view.now - since, LONGEST).total_seconds()) if since is not None and since < view.now else 0)


def led(view: View, version: DesiredSpec, trial: TrialStatus) -> TrialStatus:
    """The trial with the seconds of work at which its present driver had every shard. For a later driver it is noted again.

    One whose pod is gone, of which only the exit is known, had what was noted.
    """
    if view.driver_pod is None and view.driver.exit is not None:
        return trial
    report = _report(view, version)
    leads = report is not None and report.holds_all
    return replace(trial, led_from=worked(view, trial)) if leads is (trial.led_from is None) else trial


def is_good(view: View, version: DesiredSpec, trial: TrialStatus) -> bool:
    """Whether the version has passed: it committed enough batches, and is not slow as far as figures will ever say."""
    terms = terms_of(view)
    if terms is None or committed(view, version, trial) < terms.batches:
        return False
    report = _report(view, version)
    full = report is not None and report.busy is not None and report.busy >= FULL
    steady = terms.max_slowdown is None or trial.speed is None or not full or _is_settled(view, trial)
    return steady and _slow(view, version, trial) is None


def problem(view: View, version: DesiredSpec, trial: TrialStatus) -> TrialVerdict | None:
    """Why the version is not good enough. None: nothing is known against it."""
    return _failed(view, version, trial) or _searching(view, version, trial) or _late(view, version, trial) or _slow(view, version, trial)


def gone_with(view: View, version: DesiredSpec, trial: TrialStatus) -> TrialVerdict | None:
    """Why the pod of a version that worked before cannot be made any more: it names a Secret, say, that was deleted since.

    A new version waits for it until its time is over, because somebody may be about to make it.
    """
    if worked(view, trial) < GONE:
        return None
    standby = view.status.standby
    named = ((view.driver.spec_hash, view.driver_pod), (standby.spec_hash if standby else None, view.standby_pod))
    own = (pod.trouble for made_of, pod in named if pod is not None and pod.trouble is not None and version.is_hash(made_of))
    return next((TrialVerdict(trouble.reason, trouble.message) for trouble in own if trouble.reason in MISCONFIGURED), None)


def _report(view: View, version: DesiredSpec) -> Report | None:
    pod = view.driver_pod if version.is_hash(view.driver.spec_hash) else None
    return pod.report if pod is not None and pod.report is not None and pod.report.generation is not None else None


def _failed(view: View, version: DesiredSpec, trial: TrialStatus) -> TrialVerdict | None:
    """Its driver, or its standby, ended by its own fault, or its standby was not ready in time."""
    driver, standby = view.driver, view.status.standby
    if version.is_hash(driver.spec_hash) and driver.attempt != trial.after and driver.exit is not None and _is_fault(driver.exit):
        return TrialVerdict(driver.exit.reason, f"attempt {driver.attempt} ended: {driver.exit.message or driver.exit.reason}")
    if standby is None or not view.is_meant(standby):
        return None
    if standby.state is StandbyState.GIVEN_UP and standby.reason == TOO_SLOW:
        return TrialVerdict(TOO_SLOW, standby.message)
    if standby.state is not StandbyState.BACKING_OFF:
        return None
    text = f"attempt {standby.attempt} ended: {standby.message or standby.reason}"
    return None if standby.reason in FAULTLESS else TrialVerdict(standby.reason, text)


def _is_fault(end: Exit) -> bool:
    return end.code not in SAID_SO and end.reason not in FAULTLESS


def _searching(view: View, version: DesiredSpec, trial: TrialStatus) -> TrialVerdict | None:
    return searching(view, version) if view.driver.attempt != trial.after else None


def searching(view: View, version: DesiredSpec) -> TrialVerdict | None:
    """`process` raises on the batch of a driver of the version, and `onError` keeps the driver alive."""
    report = _report(view, version)
    texts = report.warnings if report is not None else ()
    return next((TrialVerdict(RAISING, text.removeprefix(f"{RAISING}: ")) for text in texts if text.startswith(RAISING)), None)


def _late(view: View, version: DesiredSpec, trial: TrialStatus) -> TrialVerdict | None:
    """Its time is over. The pause after each batch is not work, though its driver says Running."""
    terms, done = terms_of(view), committed(view, version, trial)
    took = worked(view, trial) - max(done, 0) * version.spec.batch.interval_seconds
    if terms is None or done >= terms.batches or took < terms.seconds:
        return None
    text = f"it committed {done} of {terms.batches} batches in {took} s of work"
    trouble = _trouble(view)
    return TrialVerdict(trouble.reason, f"{text}: {trouble.message}") if trouble else TrialVerdict("NotInTime", text)


def _trouble(view: View) -> Trouble | None:
    own = (pod.trouble for pod in (view.driver_pod, view.standby_pod) if pod is not None and pod.trouble is not None)
    return view.observed.refusal or next(own, None) or trouble_of_executors(view)


def _slow(view: View, version: DesiredSpec, trial: TrialStatus) -> TrialVerdict | None:
    """Its batches follow each other, and records take too long, by figures of as many executors as before."""
    terms, report = terms_of(view), _report(view, version)
    if terms is None or terms.max_slowdown is None or trial.speed is None or report is None or not _is_settled(view, trial):
        return None
    speed = speed_of(report)
    same = view.status.replicas == trial.executors and report.busy is not None and report.busy >= FULL
    if not same or speed is None or speed * terms.max_slowdown >= trial.speed:
        return None
    return TrialVerdict("TooSlow", f"records per second of work: {speed:.0f}, before {trial.speed:.0f} (spec.rollout.trial.maxSlowdown)")


def _is_settled(view: View, trial: TrialStatus) -> bool:
    return trial.led_from is not None and worked(view, trial) - trial.led_from >= SETTLED


def _is_working(view: View, version: DesiredSpec) -> bool:
    """Whether the time counts: a driver or a standby of the version is there or should be, and what it waits for is its own doing."""
    if view.resource.paused or view.stopped:
        return False
    standby = view.status.standby
    if standby is not None and standby.state is StandbyState.STARTING and version.is_hash(standby.spec_hash):
        beside = view.standby_pod
        lacking = beside.trouble if beside is not None else view.observed.refusal
        if lacking is not None and lacking.no_room:
            return False  # for two drivers: the rollout continues as `Recreate`
        return beside is None or beside.report is None or not beside.report.stands_by
    if view.driver.pod is None or not version.is_hash(view.driver.spec_hash) or view.leaving_pod is not None:
        return False
    pod = view.driver_pod
    return not view.observed.executors if pod is None else _is_busy(view, pod)


def _is_busy(view: View, pod: Pod) -> bool:
    if pod.deleting or pod.exit is not None:
        return False
    report = pod.report
    if report is None:
        return True
    silent = view.now - view.last_report_at >= STALE
    return not silent and report.phase not in {"Idle", "WaitingOutLease"} and not report.stands_by
