"""The migration: no driver starts before another consumer's positions are taken over.

A migration is one Job a try, named after what it takes over. `note` reads the Job's end, `migrate` decides on tries.
This module takes no action on drivers. Exit codes: docs/interfaces.md.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.names import clock, printable
from sluice_operator.plan.finalizers import taken_off_by
from sluice_operator.resource.changes import migration_hash
from sluice_operator.state.actions import Action, CreateJob, DeleteJob
from sluice_operator.state.objects import Job, Pod
from sluice_operator.state.status import Exit, MigrationState, MigrationStatus, Phase
from sluice_operator.state.view import Step, progress

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sluice_operator.state.view import View

SOURCE_ACTIVE = 75
PODLESS = timedelta(seconds=60)  # a busy controller makes a pod in seconds
TAKEN_AWAY = {"Killed", "Evicted"}
JUDGED = {MigrationState.COMPLETE, MigrationState.FAILED, MigrationState.SOURCE_ACTIVE}
OUTLIVED = timedelta(seconds=10)  # a Job is marked as ended within a moment, unless another container of its pod keeps running
MAX_TRIES = 99  # a name of 63 characters has room for two digits; then from 1 again, when the old Job is gone


def note(view: View) -> MigrationStatus | None:
    """The migration, with what the Job shows."""
    migration = view.status.migration
    if migration is None or migration.state is not MigrationState.RUNNING:
        return migration
    job = _job(view, migration)
    if job is None:
        return migration if migration.uid is None else _lost(view, migration)
    migration = replace(migration, uid=job.uid)
    due = _outlived(view, job)
    if job.state != "Active" or (due is not None and view.now >= due):
        return _ended(view, migration, job)
    return _podless(view, migration, job)


def _outlived(view: View, job: Job) -> datetime | None:
    """When a Job counts as ended whose `migrate` container ended, while an injected container keeps its pod. None: it does not."""
    going = [pod for pod in view.observed.migrators if pod.owner == job.uid and not pod.finished]
    ends = [pod.exit.at for pod in going if pod.exit and pod.exit.reason not in TAKEN_AWAY and not pod.deleting]
    return max(ends) + OUTLIVED if ends and len(ends) == len(going) else None


def _job(view: View, migration: MigrationStatus) -> Job | None:
    ours = (job for job in view.observed.jobs if job.owner == view.resource.uid)
    return next((job for job in ours if job.name == migration.job and migration.uid in {None, job.uid}), None)


def _podless(view: View, migration: MigrationStatus, job: Job) -> MigrationStatus:
    """A Job whose pod is refused (quota, account, admission) stays active and says nothing. Before the next try a dry run asks for the reason."""
    if job.active or any(pod.owner == migration.uid for pod in view.observed.migrators):
        return replace(migration, podless_since=None)
    since = migration.podless_since or view.now
    if view.now - since >= PODLESS:
        return _lost(view, replace(migration, podless_since=None), f"Job {migration.job} had no pod for {PODLESS.total_seconds():.0f} s")
    return replace(migration, podless_since=since)


def _lost(view: View, migration: MigrationStatus, message: str = "the Job was deleted before it ended") -> MigrationStatus:
    return replace(migration, state=MigrationState.LOST, message=message, next_at=_next(view, migration))


def _next(view: View, migration: MigrationStatus) -> datetime:
    return view.now + view.patience.pause(migration.tries - 1)


def _ended(view: View, migration: MigrationStatus, job: Job) -> MigrationStatus:
    pod = _last_pod(view, job)
    end = pod.exit if pod else None
    state = _outcome(job, end)
    said = end.message if end else "the Job's pod was deleted" if state is MigrationState.LOST else ""
    return replace(
        migration,
        state=state,
        message=said or printable(job.message),
        rows=pod.rows if pod else None,
        warnings=pod.warnings if pod else None,
        finished_at=view.now,
        next_at=_next(view, migration) if state in {MigrationState.SOURCE_ACTIVE, MigrationState.LOST} else None,
    )


def _outcome(job: Job, end: Exit | None) -> MigrationState:
    """The outcome of a Job that ended. If its pod was taken away it is LOST, not FAILED: a failed Job keeps its pod."""
    if job.state == "Complete" or (job.state == "Active" and end is not None and end.code == 0):
        return MigrationState.COMPLETE
    if end is None or end.reason in TAKEN_AWAY:
        return MigrationState.LOST
    return MigrationState.SOURCE_ACTIVE if end.code == SOURCE_ACTIVE else MigrationState.FAILED


def _last_pod(view: View, job: Job) -> Pod | None:
    pods = [pod for pod in view.observed.migrators if pod.owner == job.uid and pod.exit]
    return max(pods, key=lambda pod: (pod.exit.at, pod.name) if pod.exit else (view.now, ""), default=None)


def clear_jobs(view: View) -> Step | None:
    """Jobs that the status does not name: a late leader's, or of a migration that is not wanted any more. They are deleted first.

    So is a Job that counts as ended while an injected container keeps its pod.
    """
    migration = view.status.migration
    named = migration.job if migration else None
    over = migration is not None and migration.state in JUDGED
    strays = [job for job in view.observed.jobs if job.owner == view.resource.uid and (job.name != named or (over and job.state == "Active"))]
    if not strays:
        return None
    return progress(Phase.PENDING, "StrayJob", f"waiting until {strays[0].name} is gone{_kept(view, strays)}", *_deletions(view, strays))


def migrate(view: View) -> Step | None:
    """No driver before its migration: create a Job, wait for it, try again, or stall. None when the migration is complete or not wanted."""
    migration = view.status.migration
    if view.wanted is None or view.migrated:
        return None
    wanted = migration_hash(view.resource.namespace, view.resource.name, view.wanted)
    if wanted is None:
        return (
            None
            if migration is None
            else stop(view) or Step(phase=Phase.PENDING, reason="MigrationDropped", progressing=True, forget_migration=True, wake=view.now)
        )
    if migration is None or migration.hash != wanted or not view.wanted.is_job_hash(migration.spec_hash):
        return _new_try(view, wanted)
    return _BY_STATE[migration.state](view, migration)


def stop(view: View) -> Step | None:
    """Delete the migration's Jobs and wait for their pods; None when nothing of a migration runs.

    A Job that has ended is left to the garbage collector, except after `kubectl delete --cascade=orphan`.
    """
    left_alone = view.resource.deleting and "orphan" in view.resource.finalizers
    jobs = [job for job in view.observed.jobs if job.state == "Active" or left_alone or not job.owner_kind]
    running = [pod for pod in view.observed.migrators if not pod.finished]
    if not jobs and not running:
        return None
    names = ", ".join([*(job.name for job in jobs), *(pod.name for pod in running)])
    return progress(Phase.MIGRATING, "MigrationStopping", f"waiting until {names} is gone{_kept(view, jobs)}", *_deletions(view, jobs))


def _kept(view: View, jobs: Iterable[Job]) -> str:
    """What keeps a Job that was deleted."""
    found = (taken_off_by(view.resource.namespace, "job", job) for job in jobs if job.deleting)
    return next((f"; finalizers of other programs keep it: {how}" for how in found if how), "")


def _deletions(view: View, jobs: Iterable[Job]) -> list[Action]:
    """Deletions of this resource's Jobs. Jobs of another owner are left to the garbage collector."""
    return [DeleteJob(job.name, job.uid) for job in jobs if not job.deleting and job.owner == view.resource.uid]


def _new_try(view: View, wanted: str) -> Step:
    if waiting := _clear(view):
        return waiting
    before = view.status.migration
    tries = before.tries % MAX_TRIES + 1 if before and before.hash == wanted else 1
    migration = MigrationStatus(
        hash=wanted,
        spec_hash=view.wanted.job_hash if view.wanted else "",
        job=f"{view.resource.name}-migrate-{wanted}-{tries}",
        tries=tries,
        retry=view.resource.retry,
    )
    return replace(_running(view, migration), migration=migration)


def _clear(view: View) -> Step | None:
    """Before a new try: delete the old Job, finished or not: two never write. Wait for executors of an earlier resource of this name."""
    if view.observed.executors:
        return progress(Phase.MIGRATING, "ExecutorsLeaving", f"waiting until {view.observed.executors[0].name} is gone")
    if not view.observed.jobs and not view.observed.migrators:
        return None
    text = f"waiting until the Job of the last try is gone{_kept(view, view.observed.jobs)}"
    return progress(Phase.MIGRATING, "MigrationStopping", text, *_deletions(view, view.observed.jobs))


def _running(view: View, migration: MigrationStatus) -> Step:
    pods = [pod for pod in view.observed.migrators if pod.owner == migration.uid]
    trouble = next((pod.trouble for pod in pods if pod.trouble), None)
    if trouble:
        return progress(Phase.MIGRATING, trouble.reason, f"the migration's pod cannot start: {trouble.message}")
    step, job = progress(Phase.MIGRATING, "Migrating", f"Job {migration.job} copies the source's positions"), _job(view, migration)
    if migration.uid is not None or job is not None:
        outlived = _outlived(view, job) if job else None
        return replace(step, wake=migration.podless_since + PODLESS if migration.podless_since else outlived)
    return _clear(view) or replace(step, actions=(CreateJob(),))


def _wait(view: View, migration: MigrationStatus) -> Step:
    if migration.next_at is None or view.now >= migration.next_at or _asked(view, migration):
        return _new_try(view, migration.hash)
    reason = "SourceActive" if migration.state is MigrationState.SOURCE_ACTIVE else "MigrationLost"
    text = f"{migration.message}; next try at {clock(migration.next_at, view.now)}"
    return replace(progress(Phase.MIGRATING, reason, text), wake=migration.next_at)


def _asked(view: View, migration: MigrationStatus) -> bool:
    return view.resource.retry not in {None, migration.retry}


def _again(view: View, migration: MigrationStatus) -> Step:
    return _new_try(view, migration.hash)


def _failed(view: View, migration: MigrationStatus) -> Step:
    if _asked(view, migration):
        return _new_try(view, migration.hash)
    return Step(phase=Phase.FAILED, reason="MigrationFailed", message=migration.message, stalled=True)


def _passed(_view: View, migration: MigrationStatus) -> Step:
    raise ValueError(f"migration {migration.hash} is complete, there is nothing to decide")


_BY_STATE = {
    MigrationState.RUNNING: _running,
    MigrationState.SOURCE_ACTIVE: _wait,
    MigrationState.LOST: _wait,
    MigrationState.STOPPED: _again,
    MigrationState.FAILED: _failed,
    MigrationState.COMPLETE: _passed,
}
