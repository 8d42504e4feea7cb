"""Conditions and phase, computed from the step that was decided. No action is decided here.

Ready, Migrated, Draining, SpecValid and DriverHealthy are always present. Reconciling, Stalled, StartIgnored, PositionRefused, RolledBack, OutOfPool,
DataLossSuspected, SourceMoved, PoisonExcluded, ScalingLimited, RetentionNear and Isolating are present only while true; kstatus expects that of
the first two. StandbyReady is present while there is something to say of a standby.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sluice_operator.names import clock, printable
from sluice_operator.plan import failover, position
from sluice_operator.plan.advice import advised
from sluice_operator.plan.driver_succession import belated
from sluice_operator.plan.scaling import LIMITS
from sluice_operator.plan.standby_terms import STAND, may_follow, why_stopped
from sluice_operator.resource.changes import start_position
from sluice_operator.state.status import Condition, MigrationState, Phase, PositionState, StandbyState

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.state.status import MigrationStatus, StandbyStatus, Status
    from sluice_operator.state.view import Step, View

FAILING, ROLLED_BACK, OUT_OF_POOL = "ReconcileFailed", "RolledBack", "OutOfPool"
LONGEST = 1024  # characters of a message; the log or the event has all of it
# What a driver's report may warn of; each is a condition of its own.
WARNINGS = ("DataLossSuspected", "PoisonExcluded")
PASSING = ("SourceMoved", "RetentionNear", "Isolating")  # warnings that end when their cause ends


@dataclass(frozen=True, slots=True)
class ConditionValue:
    """Status (True, False or Unknown), reason and message of a condition."""

    status: str
    reason: str
    message: str = ""


def judge(view: View, step: Step) -> Status:
    """The status to write: what the step remembers, phase, conditions, and the generation that they are about."""
    status = step.onto(view.status)
    after = view.with_status(status)
    verdicts = ((kind, verdict(after, step)) for kind, verdict in VERDICTS)
    conditions = tuple(_stamped(after, kind, verdict) for kind, verdict in verdicts if verdict is not None)
    good = view.asked.raw if view.asked and not view.problem else status.last_good_spec
    return replace(
        status,
        phase=step.phase,
        conditions=conditions,
        observed_generation=view.resource.generation,
        last_good_spec=good,
    )


def _stamped(view: View, kind: str, verdict: ConditionValue) -> Condition:
    before = view.status.condition(kind)
    changed = before is None or before.status != verdict.status
    return Condition(
        type=kind,
        status=verdict.status,
        reason=verdict.reason,
        message=printable(verdict.message[:LONGEST]),
        last_transition_time=view.now if before is None or changed else before.last_transition_time,
        observed_generation=view.resource.generation,
    )


def ready(view: View, step: Step) -> ConditionValue:
    """True when the resource does what its spec asks: the driver reported lately that it holds every shard, and executors have registered.

    Suspended or scaled to zero: True when nothing runs. The reason is the step's. Unknown while reconciles fail.
    """
    if view.observed.failing:
        return ConditionValue("Unknown", FAILING, _why_failing(view))
    text = step.message if step.ready else advised(step.reason, step.message, view.resource.name, stalled=step.stalled)
    return ConditionValue("True" if step.ready else "False", step.reason, text)


def reconciling(view: View, step: Step) -> ConditionValue | None:
    """Under way to what the spec asks. Absent while Stalled is present: clients take whichever of the two comes first."""
    return ConditionValue("True", step.reason, step.message) if step.progressing and stalled(view, step) is None else None


def stalled(view: View, step: Step) -> ConditionValue | None:
    """You have to act. While reconciles fail, whatever the step says."""
    if view.observed.failing:
        return ConditionValue("True", FAILING, _why_failing(view))
    if step.stalled:
        return ConditionValue("True", step.reason, advised(step.reason, step.message, view.resource.name, stalled=True))
    if view.problem:
        return ConditionValue("True", "SpecInvalid", advised("SpecInvalid", view.problem, view.resource.name))
    back = None if view.stopped else rolled_back(view, step)
    return replace(back, reason=ROLLED_BACK) if back else None


def _why_failing(view: View) -> str:
    return advised(FAILING, view.observed.failing or "", view.resource.name, stalled=True)


def migrated(view: View, _step: Step) -> ConditionValue:
    """Whether the migration is complete, or not needed."""
    migration = view.status.migration
    if migration is None:
        needed = view.wanted is None or view.wanted.spec.migrate_from is not None
        return ConditionValue("False", "Pending") if needed else ConditionValue("True", "NotNeeded", "no migrateFrom")
    if migration.state is MigrationState.COMPLETE:
        return ConditionValue("True", "Complete", _taken_over(migration))
    reason = "MigrationFailed" if migration.state is MigrationState.FAILED else str(migration.state)
    return ConditionValue("False", reason, migration.message or f"Job {migration.job}")


def _taken_over(migration: MigrationStatus) -> str:
    """The Job's message, which counts the shards, and the number of its warnings."""
    warnings = f"{migration.warnings} warning{'' if migration.warnings == 1 else 's'}" if migration.warnings else ""
    return "; ".join(sentence for sentence in (migration.message, warnings) if sentence)


def draining(view: View, step: Step) -> ConditionValue:
    """A driver or executors end their work before they are deleted. In a restart it stays True until the next driver is seen."""
    pod, left = view.driver_pod, view.driver.leaving
    if (gone := view.leaving_pod) is not None and (late := belated(view, (gone,))) is not None:
        return ConditionValue("True", late.reason, advised(late.reason, late.message, view.resource.name, stalled=True))
    if left is not None and (view.leaving_pod is not None or step.reason == left.why):
        return ConditionValue("True", left.why, f"{left.pod} drains")
    if pod is not None and (view.driver.stopping or (pod.deleting and pod.exit is None)):
        return ConditionValue("True", view.driver.stopping or "DriverDeleted", f"{pod.name} drains")
    leaving = [f"{drain.pod} until {clock(drain.deadline, view.now)}" if drain.deadline else drain.pod for drain in view.status.draining]
    if leaving:
        return ConditionValue("True", "ScaleDown", ", ".join(leaving))
    return ConditionValue("False", "NothingToDrain")


def spec_valid(view: View, _step: Step) -> ConditionValue:
    """Whether the present spec is valid. If not, the last good one stays in force."""
    return ConditionValue("False", "SpecInvalid", view.problem) if view.problem else ConditionValue("True", "Accepted")


def driver_healthy(view: View, step: Step) -> ConditionValue:
    """The state of the driver's process."""
    pod, end = view.driver_pod, view.driver.exit
    if pod is not None and pod.trouble:
        return ConditionValue("False", pod.trouble.reason, pod.trouble.message)
    if pod is not None and pod.exit is None and step.reason in {"ReportStale", "BatchOverdue"}:
        return ConditionValue("Unknown", step.reason, step.message)
    if pod is not None and pod.report is not None and pod.report.holds_all and pod.exit is None and not pod.deleting and not view.driver.stopping:
        return ConditionValue("True", "Reporting")
    if end is not None and not view.driver.stopping and view.status.restarts.reason:
        code = "" if end.code is None else f"exit {end.code}: "
        return ConditionValue("False", end.reason, code + end.message)
    return ConditionValue("Unknown", "Starting" if view.driver.pod else "NoDriver")


def start_ignored(view: View, _step: Step) -> ConditionValue | None:
    """`spec.start` was edited after the consumer had positions."""
    given = view.status.start
    if given is None or view.wanted is None or not view.has_positions:
        return None
    text = f"spec.start was edited from {given} to {start_position(view.wanted.raw)}, which moves nothing: the consumer continues at its positions"
    return ConditionValue("True", "Edited", advised("StartIgnored", text, view.resource.name))


def position_refused(view: View, _step: Step) -> ConditionValue | None:
    """The move that `spec.position` asks for was refused, and the consumer reads on where it was."""
    move = view.status.position
    if move is None or move.state is not PositionState.REFUSED or not position.is_present(view):
        return None
    text = f"the move {move.id} {'did not come to its end' if position.LEFT in move.message else 'was not made'}: {move.message}"
    return ConditionValue("True", "Refused", advised("PositionRefused", text, view.resource.name))


def rolled_back(view: View, _step: Step) -> ConditionValue | None:
    """The version that the spec names failed on trial, and the proven one runs instead."""
    trial, proven = view.rolled_back, view.status.proven
    if trial is None or proven is None:
        return None
    since = ", which works" if trial.passed else ""
    text = f"version {trial.hash} failed on trial: {trial.message.rstrip(' .')}; rolled back to version {proven.hash}{since}"
    return ConditionValue("True", trial.reason, advised(ROLLED_BACK, text, view.resource.name))


def out_of_pool(view: View, _step: Step) -> ConditionValue | None:
    """Present while the consumer runs in a driver of its own, because it ended the process of its pool too often."""
    out = view.seating.out
    if out is None:
        return None
    text = f"the last {out.deaths} ends of the pool {view.seating.out_of} named this consumer; since {out.since:%Y-%m-%dT%H:%M:%SZ} it is out of it"
    return ConditionValue("True", "DriverDeaths", advised(OUT_OF_POOL, text, view.resource.name))


def scaling_limited(view: View, _step: Step) -> ConditionValue | None:
    """`spec.autoscale` cannot help: more executors would not change that the consumer is behind, are not allowed, or do not come. Or nobody knows."""
    autoscale = view.status.autoscale
    if autoscale is None or autoscale.reason not in LIMITS:
        return None
    return ConditionValue("True", autoscale.reason, advised(autoscale.reason, autoscale.message, view.resource.name))


def warned(kind: str) -> Callable[[View, Step], ConditionValue | None]:
    """A driver's warning stays until the resource is deleted, so that it is seen."""

    def verdict(view: View, _step: Step) -> ConditionValue | None:
        text, before = _warning_text(view, kind), view.status.condition(kind)
        if text:
            return ConditionValue("True", "Reported", advised(kind, text, view.resource.name))
        return ConditionValue("True", before.reason, before.message) if before else None

    return verdict


def passing(kind: str) -> Callable[[View, Step], ConditionValue | None]:
    """Present while the driver reports it. Without a report it stays: no record is read, so the retention gets nearer, and no batch passes.

    Once `spec.until` was reached nothing is left to read.
    """

    def verdict(view: View, step: Step) -> ConditionValue | None:
        if step.phase is Phase.COMPLETED:
            return None
        text, before = _warning_text(view, kind), view.status.condition(kind)
        if text:
            return ConditionValue("True", "Reported", advised(kind, text, view.resource.name))
        reporting = view.driver_pod is not None and view.driver_pod.report is not None
        return ConditionValue("True", before.reason, before.message) if before and not reporting else None

    return verdict


def _warning_text(view: View, kind: str) -> str:
    pod = view.driver_pod
    warnings = pod.report.warnings if pod and pod.report else ()
    return "; ".join(text.removeprefix(f"{kind}: ") for text in warnings if text.startswith(kind))


def standby_ready(view: View, _step: Step) -> ConditionValue | None:
    """Present while a rollout has a standby, and until the next rollout if one was given up. True from the hand-over on.

    With `standby: Always` it is present as long as something shall run: a consumer without a standby is not what the spec asks for. So it is False
    again once the one that follows works, whatever holds the pod of the former driver.
    """
    standby, pod = view.status.standby, view.standby_pod
    if standby is None:
        return _without_standby(view)
    if pod is not None and (late := belated(view, (pod,))) is not None:
        return ConditionValue("False", late.reason, late.message)  # the advice, `kubectl sluice force`, is about the driver that works
    if standby.state in STAND and not may_follow(view, standby):
        asked = view.has_failover or (view.stands_by and view.outdated is not None)
        return ConditionValue("False", "StandbyAwaited", f"no standby: {standby.pod} is stopped: {why_stopped(view, standby)}") if asked else None
    if standby.state is StandbyState.READY:
        return ConditionValue("True", "Ready", f"{standby.pod} stands by behind {view.driver.pod}{_refused(view, standby)}")
    return _gets_ready(view, standby) if standby.state is StandbyState.STARTING else _is_not_ready(view, standby)


def _without_standby(view: View) -> ConditionValue | None:
    left = view.driver.leaving
    works = view.driver_pod is not None and view.driver_pod.report is not None and view.driver_pod.report.holds_all
    follows = left is not None and view.driver.uid is not None and not (works and view.has_failover)
    if follows and left:
        return ConditionValue("True", "Ready", f"{view.driver.pod} is ready, and follows {left.pod}")
    why = failover.awaited(view) or "the driver gets one"
    return ConditionValue("False", "StandbyAwaited", f"no standby: {why}") if view.has_failover else None


def _gets_ready(view: View, standby: StandbyStatus) -> ConditionValue:
    pod = view.standby_pod
    trouble = pod.trouble if pod else view.observed.refusal
    if trouble is not None:
        return ConditionValue("False", trouble.reason, advised(trouble.reason, f"{standby.pod}: {trouble.message}", view.resource.name))
    until = " until then" if view.outdated is not None else ""
    does = "ends; the driver continues" if pod and pod.deleting else f"gets ready; the driver continues{until}"
    return ConditionValue("False", "StandbyStarting", f"{standby.pod} {does}")


def _refused(view: View, standby: StandbyStatus) -> str:
    """What the API server answered to a change of a standby that is there: its number of executors, or its deletion. It is repeated."""
    refusal, pod = view.observed.refusal, view.standby_pod
    if refusal is None or not view.observed.standby_refused or pod is None or pod.deleting:
        return ""
    owed = standby.state is StandbyState.BACKING_OFF or pod.target != str(view.executors)
    return f"; {advised(refusal.reason, f'a change of it was refused: {refusal.message}', view.resource.name)}" if owed else ""


def _is_not_ready(view: View, standby: StandbyStatus) -> ConditionValue:
    """It is silent, was given up, or has ended or will."""
    pod = view.standby_pod
    again = f"; the next one starts at {clock(standby.next_at, view.now)}" if standby.next_at and view.now < standby.next_at else ""
    does = "ends" if pod is not None and pod.exit is None else "ended"
    texts = {
        StandbyState.SILENT: f"{standby.message}; it is replaced if that lasts",
        StandbyState.GIVEN_UP: f"the rollout was made as Recreate: {standby.message}",
        StandbyState.BACKING_OFF: f"{standby.pod} {does}, and the driver continues: {standby.message}{again}{_refused(view, standby)}",
    }
    return ConditionValue("False", standby.reason, advised(standby.reason, texts[standby.state], view.resource.name))


VERDICTS: tuple[tuple[str, Callable[[View, Step], ConditionValue | None]], ...] = (
    ("Ready", ready),
    ("Reconciling", reconciling),
    ("Stalled", stalled),
    ("Migrated", migrated),
    ("Draining", draining),
    ("SpecValid", spec_valid),
    ("DriverHealthy", driver_healthy),
    ("StartIgnored", start_ignored),
    ("PositionRefused", position_refused),
    ("StandbyReady", standby_ready),
    (ROLLED_BACK, rolled_back),
    (OUT_OF_POOL, out_of_pool),
    ("ScalingLimited", scaling_limited),
    *((kind, warned(kind)) for kind in WARNINGS),
    *((kind, passing(kind)) for kind in PASSING),
)
