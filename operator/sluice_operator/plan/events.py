"""Events: what happened between two statuses, with reasons from one enum.

They are computed from the difference of two statuses, so a repeated plan sends none twice. A crash may lose an event; the
conditions say the same.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from sluice_operator.names import END_REACHED, counted, printable
from sluice_operator.plan import position
from sluice_operator.plan.record import DISRUPTIONS
from sluice_operator.plan.standby_terms import SILENT, STAND, TOO_SLOW, why_stopped
from sluice_operator.resource.changes import migration_hash
from sluice_operator.state.actions import AddFinalizer, CreateDriver, EventToSend, RemoveFinalizer, Retarget
from sluice_operator.state.status import Exit, MigrationState, PositionState, StandbyState, TrialState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice_operator.state.status import StandbyStatus, Status
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
    START_IGNORED = "StartIgnored"
    RESET_STARTED = "ResetStarted"
    RESET_COMPLETE = "ResetComplete"
    RESET_DELAYED = "ResetDelayed"
    RESET_STOPPED = "ResetStopped"
    POSITION_REFUSED = "PositionRefused"
    POSITION_IGNORED = "PositionIgnored"
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
    AUTOSCALED = "Autoscaled"
    SCALING_LIMITED = "ScalingLimited"
    STANDBY_STARTING = "StandbyStarting"
    STANDBY_READY = "StandbyReady"
    STANDBY_FAILED = "StandbyFailed"
    STANDBY_STOPPED = "StandbyStopped"
    STANDBY_GIVEN_UP = "StandbyGivenUp"
    TRIAL_STARTED = "TrialStarted"
    TRIAL_PASSED = "TrialPassed"
    ROLLED_BACK = "RolledBack"
    OUT_OF_POOL = "OutOfPool"
    NO_WAY_BACK = "NoWayBack"
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
    DELETED = "Deleted"


BY_STATE = {
    MigrationState.RUNNING: Reason.MIGRATION_STARTED,
    MigrationState.SOURCE_ACTIVE: Reason.SOURCE_ACTIVE,
    MigrationState.LOST: Reason.MIGRATION_LOST,
    MigrationState.STOPPED: Reason.MIGRATION_STOPPED,
    MigrationState.FAILED: Reason.MIGRATION_FAILED,
    MigrationState.COMPLETE: Reason.MIGRATION_COMPLETE,
}
BY_POSITION = {
    PositionState.RUNNING: Reason.RESET_STARTED,
    PositionState.HELD: Reason.RESET_DELAYED,
    PositionState.LOST: Reason.RESET_DELAYED,
    PositionState.FAILING: Reason.RESET_DELAYED,
    PositionState.STOPPED: Reason.RESET_STOPPED,
    PositionState.COMPLETE: Reason.RESET_COMPLETE,
}
WARNINGS = {
    Reason.RESET_DELAYED,
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
UNASKED = {Reason.DRIVER_FAILED, Reason.DRIVER_DISRUPTED}
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

TOLD = 200  # characters by which an answer is known again


def happened(view: View, old: Status, new: Status, step: Step) -> tuple[EventToSend, ...]:
    """Events of one plan, in the order in which things happened."""
    parts = (
        _spec(view, old, new),
        _migration(old, new),
        _position(view, old, new),
        _driver(view, old, new),
        _standby(view, old, new),
        _trial(old, new),
        _follower(view, old, new, step),
        _step(view, old, step),
        _autoscale(old, new),
        _warnings(old, new),
    )
    return tuple(event for some in parts for event in some)


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


def _position(view: View, old: Status, new: Status) -> Iterator[EventToSend]:
    """Not a refusal: its condition has an event. An edit of a move that was carried out moves nothing, and is not silent."""
    before, after = old.position, new.position
    if after is None or view.wanted is None:
        return
    if (before is None or (before.job, before.state) != (after.job, after.state)) and (reason := BY_POSITION.get(after.state)):
        yield _event(reason, f"{after.id}: {after.message or after.job}")
    asked, edited = view.wanted.spec.position, old.observed_generation != new.observed_generation
    done = asked is not None and asked.id in {after.id, *after.earlier} and position.asked(view.with_status(new)) is None
    if done and edited and after.state is PositionState.COMPLETE and not position.is_present(view.with_status(new)):
        text = f"the id {asked.id if asked else ''} was carried out before, so nothing is moved; choose another id"
        yield EventToSend(Reason.POSITION_IGNORED, text, warning=True)


def _driver(view: View, old: Status, new: Status) -> Iterator[EventToSend]:
    before, after = old.driver, new.driver
    end = view.driver.exit if view.driver.attempt == before.attempt else None  # the new status may already name the next attempt
    if end and before.exit is None:
        event = _exit_event(asked=before.stopping is not None, end=end, text=_ended(before.attempt, end))
        with_pool = before.host is not None and end.reason in DISRUPTIONS  # the pod is the pool's, which counts it
        yield replace(event, ended=end.reason) if event.reason in UNASKED and not with_pool else event
    if after.stopping and after.stopping != before.stopping:
        yield EventToSend(Reason.DRIVER_DRAINING, f"{after.pod}: {after.stopping}")
    if after.leaving and after.leaving != before.leaving:
        yield EventToSend(Reason.DRIVER_DRAINING, f"{after.leaving.pod}: {after.leaving.why}")


def _standby(view: View, old: Status, new: Status) -> Iterator[EventToSend]:
    """What a rollout with a standby comes to, once each."""
    before, after = old.standby, new.standby
    if before is not None and (after is None or before.attempt != after.attempt) and _was_stopped(before, new):
        yield EventToSend(Reason.STANDBY_STOPPED, f"attempt {before.attempt}: {before.pod} was stopped: {why_stopped(view, before)}")
    if after is not None and (before is None or before.attempt != after.attempt):
        yield EventToSend(Reason.STANDBY_STARTING, f"attempt {after.attempt}: {after.pod} starts beside {new.driver.pod}")
    if after is not None and before is not None and before.state != after.state:
        if after.state is StandbyState.BACKING_OFF:
            yield _backs_off(after)
        if after.state is StandbyState.READY:
            yield EventToSend(Reason.STANDBY_READY, f"attempt {after.attempt}: {after.pod} stands by behind {new.driver.pod}")
        if after.state is StandbyState.SILENT:
            yield EventToSend(Reason.STANDBY_FAILED, f"attempt {after.attempt} is not ready any more: {after.message}", warning=True)
        if after.state is StandbyState.GIVEN_UP:
            yield EventToSend(Reason.STANDBY_GIVEN_UP, f"the rollout is made as Recreate: {after.message}", warning=True)
    if (words := _refused(view, old, new)) is not None:
        yield _event(Reason.API_REFUSED, words)
    if before is not None and new.driver.attempt == before.attempt and old.driver.attempt != before.attempt:
        yield EventToSend(Reason.STANDBY_READY, f"attempt {before.attempt}: {before.pod} follows")


def _refused(view: View, old: Status, new: Status) -> str | None:
    before, after = old.condition("StandbyReady"), new.condition("StandbyReady")
    if view.observed.refusal is None or not view.observed.standby_refused or after is None:
        return None
    words = printable(view.observed.refusal.message)[:TOLD]
    return after.message if words in after.message and (before is None or words not in before.message) else None


def _was_stopped(before: StandbyStatus, new: Status) -> bool:
    """Whether a standby that the status has forgotten had a pod, had not failed, and is not the driver."""
    return before.uid is not None and before.state in STAND and new.driver.attempt != before.attempt


def _backs_off(after: StandbyStatus) -> EventToSend:
    """It ended without being asked to, or the operator replaces it. A silent one was a warning before."""
    if after.reason == SILENT:
        return EventToSend(Reason.STANDBY_STOPPED, f"attempt {after.attempt}: {after.pod} is replaced, and the driver continues: {after.message}")
    what = "is replaced" if after.reason == TOO_SLOW else "ended"
    return EventToSend(Reason.STANDBY_FAILED, f"attempt {after.attempt} {what}, and the driver continues: {after.message}", warning=True)


def _trial(old: Status, new: Status) -> Iterator[EventToSend]:
    """What becomes of a version on trial, once each. That there is no way back is a warning if it was rolled back before."""
    before, after, proven = old.trial, new.trial, new.proven
    if before is not None and proven is not None and before.hash == proven.hash and (old.proven is None or old.proven.hash != proven.hash):
        yield EventToSend(Reason.TRIAL_PASSED, f"version {proven.hash} is proven")
    if after is None or (before is not None and (before.hash, before.state, before.since) == (after.hash, after.state, after.since)):
        return
    former = proven.hash if proven else "none"
    if after.state is TrialState.RUNNING:
        yield EventToSend(Reason.TRIAL_STARTED, f"version {after.hash} is on trial, version {former} is proven")
    elif after.state is TrialState.ROLLED_BACK:
        yield EventToSend(Reason.ROLLED_BACK, f"version {after.hash} to {former}: {after.reason}, {after.message}", warning=True)
    else:
        failed = before is not None and before.state is TrialState.ROLLED_BACK
        yield EventToSend(Reason.NO_WAY_BACK, f"{after.reason}, so version {after.hash} has no trial: {after.message}", warning=failed)


def _follower(view: View, old: Status, new: Status, step: Step) -> Iterator[EventToSend]:
    """The driver before is gone, and the next is created, or will not be. An earlier write may have named it."""
    before, after = old.driver, new.driver
    making, again = CreateDriver() in step.actions, view.observed.refusal is not None
    followed = before.uid is not None and after.leaving is None  # by a standby, which was made before
    if before.leaving and ((making and not again) or after.pod is None or followed):
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
            yield EventToSend(Reason.DELETED, step.message, after=action)
        if isinstance(action, Retarget):
            yield EventToSend(Reason.SCALING, f"{counted(action.executors, 'executor')} requested from {action.pod}", after=action)
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


def _autoscale(old: Status, new: Status) -> Iterator[EventToSend]:
    """A number that the operator has chosen, and each new reason for which it chooses no other."""
    before, after = old.autoscale, new.autoscale
    if before and after and before.replicas != after.replicas and before.changed_at != after.changed_at:
        yield EventToSend(Reason.AUTOSCALED, f"executors {before.replicas} → {after.replicas}: {after.reason}, {after.message}")
    was, limit = old.condition(Reason.SCALING_LIMITED), new.condition(Reason.SCALING_LIMITED)
    if limit and (was is None or was.reason != limit.reason):  # its message changes with every report
        yield EventToSend(Reason.SCALING_LIMITED, f"{limit.reason}: {limit.message}", warning=True)


def _warnings(old: Status, new: Status) -> Iterator[EventToSend]:
    for reason in (
        Reason.START_IGNORED,
        Reason.POSITION_REFUSED,
        Reason.OUT_OF_POOL,
        Reason.DATA_LOSS_SUSPECTED,
        Reason.SOURCE_MOVED,
        Reason.POISON_EXCLUDED,
    ):
        before, after = old.condition(reason), new.condition(reason)
        if after and (before is None or before.message != after.message):
            yield EventToSend(reason, after.message, warning=True)
    for reason in (Reason.RETENTION_NEAR, Reason.ISOLATING):
        begun = new.condition(reason)
        if begun and old.condition(reason) is None:  # its message changes with every report
            yield EventToSend(reason, begun.message, warning=True)
