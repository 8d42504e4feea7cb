"""Events: what happened between two statuses, with reasons from one enum.

They are computed from the difference of two statuses, so a repeated plan sends none twice. A crash may lose an event; the
conditions say the same.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from sluice_operator.names import END_REACHED, counted
from sluice_operator.plan.record import DISRUPTIONS
from sluice_operator.resource.changes import migration_hash
from sluice_operator.state.actions import AddFinalizer, CreateDriver, EventToSend, RemoveFinalizer, Retarget
from sluice_operator.state.status import Exit, MigrationState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice_operator.state.status import Status
    from sluice_operator.state.view import Step, View


class Reason(StrEnum):
    """Every reason an event of the operator can have."""

    ACCEPTED = "Accepted"
    SPEC_INVALID = "SpecInvalid"
    MIGRATION_STARTED = "MigrationStarted"
    MIGRATION_COMPLETE = "MigrationComplete"
    MIGRATION_FAILED = "MigrationFailed"
    MIGRATION_STOPPED = "MigrationStopped"
    MIGRATION_LOST = "MigrationLost"
    MIGRATION_IGNORED = "MigrationIgnored"
    SOURCE_ACTIVE = "SourceActive"
    DRIVER_STARTING = "DriverStarting"
    DRIVER_READY = "DriverReady"
    DRIVER_DRAINING = "DriverDraining"
    DRIVER_EXITED = "DriverExited"
    END_REACHED = END_REACHED
    DRIVER_DISRUPTED = "DriverDisrupted"
    DRIVER_FAILED = "DriverFailed"
    DRIVER_OVERDUE = "DriverOverdue"
    POD_HELD = "PodHeld"
    DRAIN_CUT_SHORT = "DrainCutShort"
    STRAY_DRIVER = "StrayDriver"
    FORCED = "Forced"
    WAITING_OUT_LEASE = "WaitingOutLease"
    REPORT_STALE = "ReportStale"
    POD_TROUBLE = "PodTrouble"
    SCALING = "Scaling"
    SUSPENDED = "Suspended"
    PAUSED = "Paused"
    API_REFUSED = "ApiRefused"
    STATUS_REFUSED = "StatusRefused"
    RECONCILE_FAILED = "ReconcileFailed"
    DATA_LOSS_SUSPECTED = "DataLossSuspected"
    SOURCE_MOVED = "SourceMoved"
    RETENTION_NEAR = "RetentionNear"
    POISON_EXCLUDED = "PoisonExcluded"
    ISOLATING = "Isolating"
    OUTAGE_LASTS = "OutageLasts"
    DELETED = "Deleted"


BY_STATE = {
    MigrationState.RUNNING: Reason.MIGRATION_STARTED,
    MigrationState.SOURCE_ACTIVE: Reason.SOURCE_ACTIVE,
    MigrationState.LOST: Reason.MIGRATION_LOST,
    MigrationState.STOPPED: Reason.MIGRATION_STOPPED,
    MigrationState.FAILED: Reason.MIGRATION_FAILED,
    MigrationState.COMPLETE: Reason.MIGRATION_COMPLETE,
}
WARNINGS = {
    Reason.SOURCE_ACTIVE,
    Reason.MIGRATION_LOST,
    Reason.MIGRATION_FAILED,
    Reason.DRIVER_OVERDUE,
    Reason.POD_HELD,
    Reason.STRAY_DRIVER,
    Reason.FORCED,
    Reason.REPORT_STALE,
    Reason.API_REFUSED,
}
SENT_ON_CHANGE = {
    Reason.DRIVER_OVERDUE,
    Reason.POD_HELD,
    Reason.STRAY_DRIVER,
    Reason.FORCED,
    Reason.WAITING_OUT_LEASE,
    Reason.REPORT_STALE,
    Reason.SUSPENDED,
    Reason.PAUSED,
    Reason.API_REFUSED,
}


def happened(view: View, old: Status, new: Status, step: Step) -> tuple[EventToSend, ...]:
    """Events of one plan, in the order in which things happened."""
    parts = (
        _spec(view, old, new),
        _migration(old, new),
        _driver(view, old, new),
        _follower(view, old, new, step),
        _step(view, old, step),
        _warnings(old, new),
    )
    return tuple(event for part in parts for event in part)


def _event(reason: Reason, message: str) -> EventToSend:
    return EventToSend(reason, message, reason in WARNINGS)


def _spec(view: View, old: Status, new: Status) -> Iterator[EventToSend]:
    before, after = old.condition("SpecValid"), new.condition("SpecValid")
    if after and after.status == "False" and (before is None or before.message != after.message):
        yield EventToSend(Reason.SPEC_INVALID, after.message, warning=True)
    migration = new.migration
    if migration is None or migration.state is not MigrationState.COMPLETE or view.wanted is None:
        return
    wanted = migration_hash(view.resource.namespace, view.resource.name, view.wanted)
    if wanted not in {None, migration.hash} and old.observed_generation != new.observed_generation:
        yield EventToSend(Reason.MIGRATION_IGNORED, "migrateFrom was edited after the migration, which has no effect")


def _migration(old: Status, new: Status) -> Iterator[EventToSend]:
    before, after = old.migration, new.migration
    if after is None or (before and (before.job, before.state) == (after.job, after.state)):
        return
    reason = BY_STATE[after.state]
    yield _event(reason, after.message or after.job)


def _driver(view: View, old: Status, new: Status) -> Iterator[EventToSend]:
    before, after = old.driver, new.driver
    end = view.driver.exit if view.driver.attempt == before.attempt else None  # the new status may already name the next attempt
    if end and before.exit is None:
        yield _exit_event(asked=before.stopping is not None, end=end, text=_ended(before.attempt, end))
    if after.stopping and after.stopping != before.stopping:
        yield EventToSend(Reason.DRIVER_DRAINING, f"{after.pod}: {after.stopping}")
    if after.leaving and after.leaving != before.leaving:
        yield EventToSend(Reason.DRIVER_DRAINING, f"{after.leaving.pod}: {after.leaving.why}")


def _follower(view: View, old: Status, new: Status, step: Step) -> Iterator[EventToSend]:
    """The driver before is gone, and the next is created, or will not be. An earlier write may have named it."""
    before, after = old.driver, new.driver
    making, again = CreateDriver() in step.actions, view.observed.refusal is not None
    if before.leaving and ((making and not again) or after.pod is None):
        end = view.observed.exits.get(before.leaving.uid, Exit(reason="Drained", message="its exit was not seen", at=view.now))
        yield _exit_event(asked=True, end=end, text=_ended(before.leaving.attempt, end))
    if making and (before.attempt != after.attempt or (before.leaving and not again)):
        yield EventToSend(Reason.DRIVER_STARTING, f"attempt {after.attempt}: {after.pod}")


def _ended(attempt: int, end: Exit) -> str:
    return f"attempt {attempt} ended with {'no code' if end.code is None else end.code}: {end.message or end.reason}"


CLEAN = {0, 75}  # 75: a driver with `spec.until` that was drained in front of it; what is in `DISRUPTIONS` and has this code is nothing else


def _exit_event(*, asked: bool, end: Exit, text: str) -> EventToSend:
    if end.reason == END_REACHED:
        return EventToSend(Reason.END_REACHED, text)
    if asked and (end.code in {0, None} or end.reason == "Drained"):
        return EventToSend(Reason.DRIVER_EXITED, text)
    if asked:
        return EventToSend(Reason.DRAIN_CUT_SHORT, f"{text}. The next driver may have to wait for its lease", warning=True)
    if end.reason in DISRUPTIONS:
        return EventToSend(Reason.DRIVER_DISRUPTED, f"{end.reason}: {text}", warning=end.code not in CLEAN)
    return EventToSend(Reason.DRIVER_FAILED, text, warning=True)


def _step(view: View, old: Status, step: Step) -> Iterator[EventToSend]:
    before = old.condition("Ready")
    for action in step.actions:
        if isinstance(action, AddFinalizer):
            yield EventToSend(Reason.ACCEPTED, step.message)
        if isinstance(action, RemoveFinalizer):
            yield EventToSend(Reason.DELETED, step.message, after_action=True)
        if isinstance(action, Retarget):
            yield EventToSend(Reason.SCALING, f"{counted(action.executors, 'executor')} requested from {action.pod}", after_action=True)
    if view.observed.failing:  # Ready says that instead, so nothing shows what has been sent already
        return
    if step.ready and view.driver_pod is not None and (before is None or before.status != "True"):
        yield EventToSend(Reason.DRIVER_READY, step.message)
    if before and before.reason == step.reason:
        return
    if step.reason in SENT_ON_CHANGE:
        yield _event(Reason(step.reason), step.message)
    pods = (*view.observed.drivers, *view.observed.migrators)
    if step.reason in {pod.trouble.reason for pod in pods if pod.trouble}:
        yield EventToSend(Reason.POD_TROUBLE, step.message, warning=True)


def _warnings(old: Status, new: Status) -> Iterator[EventToSend]:
    for reason in (Reason.DATA_LOSS_SUSPECTED, Reason.SOURCE_MOVED, Reason.POISON_EXCLUDED):
        before, after = old.condition(reason), new.condition(reason)
        if after and (before is None or before.message != after.message):
            yield EventToSend(reason, after.message, warning=True)
    for reason in (Reason.RETENTION_NEAR, Reason.ISOLATING, Reason.OUTAGE_LASTS):
        begun = new.condition(reason)
        if begun and old.condition(reason) is None:  # its message changes with every report
            yield EventToSend(reason, begun.message, warning=True)
