"""The migration: no driver starts before another consumer's positions are taken over.

A migration is one Job a try, named after what it takes over. `note` reads the Job's end, `migrate` decides on tries.
This module takes no action on drivers. Exit codes: docs/interfaces.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.names import clock
from sluice_operator.plan import jobs
from sluice_operator.plan.jobs import MAX_TRIES, JobView
from sluice_operator.resource.changes import migration_hash
from sluice_operator.state.actions import CreateJob
from sluice_operator.state.status import MigrationState, MigrationStatus, Phase
from sluice_operator.state.view import Step, progress

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.view import View

SOURCE_ACTIVE = 75  # exit code: the source is in use
STOPPING = "MigrationStopping"
JUDGED = {MigrationState.COMPLETE, MigrationState.FAILED, MigrationState.SOURCE_ACTIVE}


def note(view: View) -> MigrationStatus | None:
    """The migration, with what the Job shows."""
    migration = view.status.migration
    if migration is None or migration.state is not MigrationState.RUNNING:
        return migration
    seen = jobs.job_view(view, migration)
    migration = replace(migration, uid=seen.uid, podless_since=seen.podless_since)
    if seen.lost is not None:
        return replace(migration, state=MigrationState.LOST, message=seen.lost, next_at=_next(view, migration))
    return _ended(view, migration, seen) if seen.ended else migration


def _next(view: View, migration: MigrationStatus) -> datetime:
    return view.now + view.patience.pause(migration.tries - 1)


def _ended(view: View, migration: MigrationStatus, seen: JobView) -> MigrationStatus:
    state = _outcome(seen)
    return replace(
        migration,
        state=state,
        message=seen.message,
        rows=seen.pod.rows if seen.pod else None,
        warnings=seen.pod.warnings if seen.pod else None,
        finished_at=view.now,
        next_at=_next(view, migration) if state in {MigrationState.SOURCE_ACTIVE, MigrationState.LOST} else None,
    )


def _outcome(seen: JobView) -> MigrationState:
    """The outcome of a Job that ended. Without an answer in time (1), killed, or its pod taken away, it is LOST: whatever was written is safe."""
    code = seen.end.code if seen.end else None
    if seen.done:
        return MigrationState.COMPLETE
    if code in jobs.REFUSALS:
        return MigrationState.FAILED
    return MigrationState.SOURCE_ACTIVE if code == SOURCE_ACTIVE else MigrationState.LOST


def migrate(view: View) -> Step | None:
    """No driver before its migration: create a Job, wait for it, try again, or stall. None when the migration is complete or not wanted."""
    migration = view.status.migration
    if view.wanted is None or view.migrated:
        return None
    wanted = migration_hash(view.resource.namespace, view.resource.name, view.wanted)
    if wanted is None:
        return None if migration is None else _dropped(view)
    if migration is None or migration.hash != wanted or not view.wanted.is_job_hash(migration.spec_hash):
        return _new_try(view, wanted)
    return _BY_STATE[migration.state](view, migration)


def _dropped(view: View) -> Step:
    forgotten = Step(phase=Phase.PENDING, reason="MigrationDropped", progressing=True, forget_migration=True, wake=view.now)
    return jobs.stop(view, Phase.MIGRATING, STOPPING) or forgotten


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
    return jobs.clear(view, Phase.MIGRATING, STOPPING)


def _running(view: View, migration: MigrationStatus) -> Step:
    if trouble := jobs.trouble(view, migration):
        return progress(Phase.MIGRATING, trouble[0], f"the migration's pod cannot start: {trouble[1]}")
    step = progress(Phase.MIGRATING, "Migrating", f"Job {migration.job} copies the source's positions")
    if migration.uid is not None or jobs.find(view, migration) is not None:
        return replace(step, wake=jobs.wake(view, migration))
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
