"""What is seen of the Job of one try, of a migration or of a move of positions; and how Jobs are ended. Pure.

A try is one Job, named in the status before it is made. Its state there is decided by `migration` and `position`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.names import printable
from sluice_operator.plan.finalizers import taken_off_by
from sluice_operator.state.actions import Action, DeleteJob
from sluice_operator.state.view import Step, progress

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sluice_operator.state.objects import Job, Pod
    from sluice_operator.state.status import Exit, MigrationStatus, Phase, PositionStatus
    from sluice_operator.state.view import View

PODLESS = timedelta(seconds=60)  # a busy controller makes a pod in seconds
TAKEN_AWAY = {"Killed", "Evicted"}
REFUSALS = {2, 65}  # exit codes: wrong usage, and what needs attention
OUTLIVED = timedelta(seconds=10)  # a Job is marked as ended within a moment, unless another container of its pod keeps running
MAX_TRIES = 99  # a name of 63 characters has room for two digits; then from 1 again, when the old Job is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """What is seen of a try's Job.

    `lost`: why it counts as lost. `ended`: it, or its own container, has ended; with `end` and `pod`, the last pod, if these were seen, and `done` if
    it did its work.
    """

    uid: str | None
    podless_since: datetime | None = None
    lost: str | None = None
    ended: bool = False
    done: bool = False
    end: Exit | None = None
    pod: Pod | None = None
    message: str = ""

    @property
    def taken_away(self) -> bool:
        """Its pod was taken away, and nobody saw it end. A failed Job keeps its pod."""
        return self.end is None or self.end.reason in TAKEN_AWAY


def job_view(view: View, gate: MigrationStatus | PositionStatus) -> JobView:
    """What is seen of the Job that a try names."""
    job = find(view, gate)
    if job is None:
        return JobView(uid=gate.uid, lost=None if gate.uid is None else "the Job was deleted before it ended")
    due = outlived(view, job)
    if job.state != "Active" or (due is not None and view.now >= due):
        return _ended(view, job)
    return _podless(view, gate, job)


def _ended(view: View, job: Job) -> JobView:
    pods = [pod for pod in view.observed.migrators if pod.owner == job.uid and pod.exit]
    pod = max(pods, key=lambda each: (each.exit.at, each.name) if each.exit else (view.now, ""), default=None)
    end = pod.exit if pod else None
    done = job.state == "Complete" or (job.state == "Active" and end is not None and end.code == 0)
    lost = not done and (end is None or end.reason in TAKEN_AWAY)
    message = end.message if end else "the Job's pod was deleted" if lost else ""
    return JobView(uid=job.uid, ended=True, done=done, end=end, pod=pod, message=message or printable(job.message))


def _podless(view: View, gate: MigrationStatus | PositionStatus, job: Job) -> JobView:
    """A Job whose pod is refused (quota, account, admission) stays active and says nothing. Before the next try a dry run asks for the reason."""
    if job.active or any(pod.owner == job.uid for pod in view.observed.migrators):
        return JobView(uid=job.uid)
    since = gate.podless_since or view.now
    if view.now - since >= PODLESS:
        return JobView(uid=job.uid, lost=f"Job {gate.job} had no pod for {PODLESS.total_seconds():.0f} s")
    return JobView(uid=job.uid, podless_since=since)


def outlived(view: View, job: Job) -> datetime | None:
    """When a Job counts as ended whose own container ended, while an injected container keeps its pod. None: it does not."""
    going = [pod for pod in view.observed.migrators if pod.owner == job.uid and not pod.finished]
    ends = [pod.exit.at for pod in going if pod.exit and pod.exit.reason not in TAKEN_AWAY and not pod.deleting]
    return max(ends) + OUTLIVED if ends and len(ends) == len(going) else None


def find(view: View, gate: MigrationStatus | PositionStatus) -> Job | None:
    """The Job that a try names."""
    ours = (job for job in view.observed.jobs if job.owner == view.resource.uid)
    return next((job for job in ours if job.name == gate.job and gate.uid in {None, job.uid}), None)


def trouble(view: View, gate: MigrationStatus | PositionStatus) -> tuple[str, str] | None:
    """Reason and message of what keeps the Job's pod from starting."""
    return next(((pod.trouble.reason, pod.trouble.message) for pod in view.observed.migrators if pod.owner == gate.uid and pod.trouble), None)


def wake(view: View, gate: MigrationStatus | PositionStatus) -> datetime | None:
    """When a Job that runs is looked at again, if nothing is reported until then."""
    job = find(view, gate)
    return gate.podless_since + PODLESS if gate.podless_since else outlived(view, job) if job else None


def stop(view: View, phase: Phase, reason: str) -> Step | None:
    """Delete the resource's Jobs and wait for their pods; None when none runs.

    A Job that has ended is left to the garbage collector, except after `kubectl delete --cascade=orphan`.
    """
    left_alone = view.resource.deleting and "orphan" in view.resource.finalizers
    jobs = [job for job in view.observed.jobs if job.state == "Active" or left_alone or not job.owner_kind]
    running = [pod for pod in view.observed.migrators if not pod.finished]
    if not jobs and not running:
        return None
    names = ", ".join([*(job.name for job in jobs), *(pod.name for pod in running)])
    return progress(phase, reason, f"waiting until {names} is gone{kept(view, jobs)}", *deletions(view, jobs))


def clear(view: View, phase: Phase, reason: str) -> Step | None:
    """Before a new try: delete the old Job, finished or not: two never write. Wait for executors of an earlier resource of this name."""
    if view.observed.executors:
        return progress(phase, "ExecutorsLeaving", f"waiting until {view.observed.executors[0].name} is gone")
    if not view.observed.jobs and not view.observed.migrators:
        return None
    text = f"waiting until the Job of the last try is gone{kept(view, view.observed.jobs)}"
    return progress(phase, reason, text, *deletions(view, view.observed.jobs))


def kept(view: View, jobs: Iterable[Job]) -> str:
    """What keeps a Job that was deleted."""
    holders = (taken_off_by(view.resource.namespace, "job", job) for job in jobs if job.deleting)
    return next((f"; finalizers of other programs keep it: {how}" for how in holders if how), "")


def deletions(view: View, jobs: Iterable[Job]) -> list[Action]:
    """Deletions of this resource's Jobs. Jobs of another owner are left to the garbage collector."""
    return [DeleteJob(job.name, job.uid) for job in jobs if not job.deleting and job.owner == view.resource.uid]
