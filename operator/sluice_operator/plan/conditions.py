"""Conditions and phase, computed from the step that was decided; nothing here decides.

Ready, Migrated, Draining, SpecValid and DriverHealthy are always there. Reconciling, Stalled, DataLossSuspected, SourceMoved
and RetentionNear are there only while true, as kstatus reads the first two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sluice_operator.plan.advice import advised
from sluice_operator.state.status import Condition, MigrationState

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.state.status import MigrationStatus, Status
    from sluice_operator.state.view import Step, View

LONGEST = 1024  # characters of a message; the whole of it is in the log or the event
# What a driver's report may warn of; each is a condition of its own.
WARNINGS = ("DataLossSuspected", "SourceMoved")
PASSING = "RetentionNear"  # what it may warn of only for as long as it is so


@dataclass(frozen=True, slots=True)
class ConditionValue:
    """What a condition says now: status is True, False or Unknown."""

    status: str
    reason: str
    message: str = ""


def judge(view: View, step: Step) -> Status:
    """The status to write: the step's memory, phase, conditions, and the generation all this is about."""
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
        message=verdict.message[:LONGEST],
        last_transition_time=view.now if before is None or changed else before.last_transition_time,
        observed_generation=view.resource.generation,
    )


def ready(_view: View, step: Step) -> ConditionValue:
    """True when the resource does what its spec asks: the driver said lately that it holds every shard, and executors have registered with it.

    Suspended or scaled to zero, it is True when nothing runs. Its reason is always the step's.
    """
    text = step.message if step.ready else advised(step.reason, step.message, stalled=step.stalled)
    return ConditionValue("True" if step.ready else "False", step.reason, text)


def reconciling(view: View, step: Step) -> ConditionValue | None:
    """On the way to what the user wants; not while a person has to do something, for clients take whichever of the two comes first."""
    return ConditionValue("True", step.reason, step.message) if step.progressing and stalled(view, step) is None else None


def stalled(view: View, step: Step) -> ConditionValue | None:
    """Somebody has to do something."""
    if step.stalled:
        return ConditionValue("True", step.reason, advised(step.reason, step.message, stalled=True))
    return ConditionValue("True", "SpecInvalid", advised("SpecInvalid", view.problem)) if view.problem else None


def migrated(view: View, _step: Step) -> ConditionValue:
    """The gate."""
    migration = view.status.migration
    if migration is None:
        needed = view.wanted is None or view.wanted.spec.migrate_from is not None
        return ConditionValue("False", "Pending") if needed else ConditionValue("True", "NotNeeded", "no migrateFrom")
    if migration.state is MigrationState.COMPLETE:
        return ConditionValue("True", "Complete", _taken_over(migration))
    reason = "MigrationFailed" if migration.state is MigrationState.FAILED else str(migration.state)
    return ConditionValue("False", reason, migration.message or f"Job {migration.job}")


def _taken_over(migration: MigrationStatus) -> str:
    """The Job's own words count the shards; how many warnings there were stands beside them in its result."""
    warnings = f"{migration.warnings} warning{'' if migration.warnings == 1 else 's'}" if migration.warnings else ""
    return "; ".join(part for part in (migration.message, warnings) if part)


def draining(view: View, step: Step) -> ConditionValue:
    """A driver or executors end their work before they go; in a restart that goes well, until the next driver was seen."""
    pod, left = view.driver_pod, view.driver.leaving
    if left is not None and (view.leaving_pod is not None or step.reason == left.why):
        return ConditionValue("True", left.why, f"{left.pod} drains")
    if pod is not None and (view.driver.stopping or (pod.deleting and pod.exit is None)):
        return ConditionValue("True", view.driver.stopping or "DriverDeleted", f"{pod.name} drains")
    leaving = [f"{drain.pod} until {drain.deadline:%H:%M:%S}Z" if drain.deadline else drain.pod for drain in view.status.draining]
    if leaving:
        return ConditionValue("True", "ScaleDown", ", ".join(leaving))
    return ConditionValue("False", "NothingToDrain")


def spec_valid(view: View, _step: Step) -> ConditionValue:
    """Whether the present spec can be carried out; if not, the last good one goes on."""
    return ConditionValue("False", "SpecInvalid", view.problem) if view.problem else ConditionValue("True", "Accepted")


def driver_healthy(view: View, step: Step) -> ConditionValue:
    """What can be said about the driver's process."""
    pod, end = view.driver_pod, view.driver.exit
    if pod is not None and pod.trouble:
        return ConditionValue("False", pod.trouble.reason, pod.trouble.message)
    if step.reason in {"ReportStale", "BatchOverdue"}:
        return ConditionValue("Unknown", step.reason, step.message)
    if pod is not None and pod.report is not None and pod.report.holds_all and pod.exit is None and not pod.deleting and not view.driver.stopping:
        return ConditionValue("True", "Reporting")
    if end is not None and not view.driver.stopping and view.status.restarts.reason:
        code = "" if end.code is None else f"exit {end.code}: "
        return ConditionValue("False", end.reason, code + end.message)
    return ConditionValue("Unknown", "Starting" if view.driver.pod else "NoDriver")


def warned(kind: str) -> Callable[[View, Step], ConditionValue | None]:
    """What a driver once warned of stays until the resource is deleted: nobody should miss it."""

    def verdict(view: View, _step: Step) -> ConditionValue | None:
        said, before = _said(view, kind), view.status.condition(kind)
        if said:
            return ConditionValue("True", "Reported", said)
        return ConditionValue("True", before.reason, before.message) if before else None

    return verdict


def retention_near(view: View, _step: Step) -> ConditionValue | None:
    """What a driver reports until it is over. While none reports, nobody reads, and retention only comes nearer."""
    said, before = _said(view, PASSING), view.status.condition(PASSING)
    if said:
        return ConditionValue("True", "Reported", said)
    reporting = view.driver_pod is not None and view.driver_pod.report is not None
    return ConditionValue("True", before.reason, before.message) if before and not reporting else None


def _said(view: View, kind: str) -> str:
    pod = view.driver_pod
    warnings = pod.report.warnings if pod and pod.report else ()
    return "; ".join(text for text in warnings if text.startswith(kind))


VERDICTS: tuple[tuple[str, Callable[[View, Step], ConditionValue | None]], ...] = (
    ("Ready", ready),
    ("Reconciling", reconciling),
    ("Stalled", stalled),
    ("Migrated", migrated),
    ("Draining", draining),
    ("SpecValid", spec_valid),
    ("DriverHealthy", driver_healthy),
    *((kind, warned(kind)) for kind in WARNINGS),
    (PASSING, retention_near),
)
