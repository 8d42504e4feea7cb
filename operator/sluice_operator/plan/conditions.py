"""Conditions and phase, computed from the step that was decided. No action is decided here.

Ready, Migrated, Draining, SpecValid and DriverHealthy are always present. Reconciling, Stalled, DataLossSuspected, SourceMoved, PoisonExcluded,
RetentionNear, Isolating and OutageLasts are present only while true; kstatus expects that of the first two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sluice_operator.names import clock, printable
from sluice_operator.plan.advice import advised
from sluice_operator.state.status import Condition, MigrationState, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.state.status import MigrationStatus, Status
    from sluice_operator.state.view import Step, View

FAILING = "ReconcileFailed"
LONGEST = 1024  # characters of a message; the log or the event has all of it
# What a driver's report may warn of; each is a condition of its own.
WARNINGS = ("DataLossSuspected", "SourceMoved", "PoisonExcluded")
PASSING = ("RetentionNear", "Isolating", "OutageLasts")  # warnings that end when their cause ends


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
    found = ((kind, verdict(after, step)) for kind, verdict in VERDICTS)
    conditions = tuple(_stamped(after, kind, verdict) for kind, verdict in found if verdict is not None)
    good = view.wanted.raw if view.wanted and not view.problem else status.last_good_spec
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
    return ConditionValue("True", "SpecInvalid", advised("SpecInvalid", view.problem, view.resource.name)) if view.problem else None


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
    return "; ".join(part for part in (migration.message, warnings) if part)


def draining(view: View, step: Step) -> ConditionValue:
    """A driver or executors end their work before they are deleted. In a restart it stays True until the next driver is seen."""
    pod, left = view.driver_pod, view.driver.leaving
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


def warned(kind: str) -> Callable[[View, Step], ConditionValue | None]:
    """A driver's warning stays until the resource is deleted, so that it is seen."""

    def verdict(view: View, _step: Step) -> ConditionValue | None:
        said, before = _said(view, kind), view.status.condition(kind)
        if said:
            return ConditionValue("True", "Reported", said)
        return ConditionValue("True", before.reason, before.message) if before else None

    return verdict


def passing(kind: str) -> Callable[[View, Step], ConditionValue | None]:
    """Present while the driver reports it. Without a report it stays: no record is read, so the retention gets nearer, and no batch passes.

    Once `spec.until` was reached nothing is left to read.
    """

    def verdict(view: View, step: Step) -> ConditionValue | None:
        if step.phase is Phase.COMPLETED:
            return None
        said, before = _said(view, kind), view.status.condition(kind)
        if said:
            return ConditionValue("True", "Reported", said)
        reporting = view.driver_pod is not None and view.driver_pod.report is not None
        return ConditionValue("True", before.reason, before.message) if before and not reporting else None

    return verdict


def _said(view: View, kind: str) -> str:
    pod = view.driver_pod
    warnings = pod.report.warnings if pod and pod.report else ()
    return "; ".join(text.removeprefix(f"{kind}: ") for text in warnings if text.startswith(kind))


VERDICTS: tuple[tuple[str, Callable[[View, Step], ConditionValue | None]], ...] = (
    ("Ready", ready),
    ("Reconciling", reconciling),
    ("Stalled", stalled),
    ("Migrated", migrated),
    ("Draining", draining),
    ("SpecValid", spec_valid),
    ("DriverHealthy", driver_healthy),
    *((kind, warned(kind)) for kind in WARNINGS),
    *((kind, passing(kind)) for kind in PASSING),
)
