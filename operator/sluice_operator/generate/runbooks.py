"""Which runbook of docs/runbooks.md is for which reason, and the page's tables.

Every reason with advice has one (`tests/operator/generate/test_runbooks.py`); alerts name theirs in charts/sluice/files/alerts.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from sluice_operator.generate.markdown import slug, table
from sluice_operator.plan.advice import FAILURES, OTHERS

ANY = "By reason"  # the table of all reasons: where an alert leads that fires for any of them
ALERTS = Path(__file__).parents[3] / "charts" / "sluice" / "files" / "alerts.yaml"
ALERT = re.compile(r"(?s)- alert: (\w+)\n.*?runbook: runbooks\.md#([\w-]+)")

RUNBOOKS: dict[str, tuple[str, ...]] = {
    "A consumer is behind": ("HotShard", "NoGain", "NotBusy", "AtMaximum", "AtActiveShards", "NoFigures"),
    "Records are about to expire": ("RetentionNear",),
    "Records may be lost": ("DataLost", "DataLossSuspected"),
    "The spec is refused": ("SpecInvalid",),
    "A version was rolled back": ("RolledBack",),
    "An edit of spec.start has no effect": ("StartIgnored",),
    "Positions are not moved": ("PositionRefused", "Resetting", "ResetLost", "ResetFailing"),
    "The operator cannot reconcile a resource": ("ReconcileFailed",),
    "The API server refuses a call": ("ApiRefused",),
    "A consumer does not start": (
        "Refused",
        "StreamNotFound",
        "DriverStarting",
        "SpecChanged",
        "RestartRequested",
        "WaitingOutLease",
        "StandbyNotReady",
    ),
    "A consumer of a pool does not start": ("PoolMissing", "PoolFull", "PoolSuspended", "PoolNotReady"),
    "A member ends the process of its pool": ("PoolFailing", "OutOfPool"),
    "AWS denies a permission": ("AccessDenied", "Refused"),
    "AWS throttles calls": (),
    "A pod cannot start": (
        "ImagePullBackOff",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
    ),
    "Pods stay Pending": ("Unschedulable", "ExecutorsPending", "ExecutorsOverdue", "StandbyWithoutRoom"),
    "A driver fails again and again": ("Failed", "Completed", "OOMKilled", "Killed", "Evicted", "DriverLost", "NotNow", "Interrupted"),
    "An executor runs out of memory": (),
    "A batch that does not end": ("BatchOverdue",),
    "Records that cannot be processed": ("Isolating", "OutageLasts", "PoisonExcluded", "TooMuchPoison"),
    "A driver is silent": ("ReportStale",),
    "A driver's node is lost": ("DriverOverdue", "ExecutorsLeaving", "Forced"),
    "A driver has no standby": ("StandbyAwaited", "StandbySilent", "StandbyNotReady", "Unschedulable", "ApiRefused"),
    "A finalizer keeps a pod": ("PodHeld",),
    "Drains are cut short": (),
    "The lease is held, or changes hands": ("LeaseHeld", "Held", "Fenced"),
    "The checkpoint table belongs to another consumer": ("Refused",),
    "A pod or Job runs that the status does not name": ("StrayDriver", "StrayJob"),
    "A migration failed": ("MigrationFailed", "MigrationLost", "Migrating"),
    "The old consumer still runs": ("SourceActive", "SourceMoved"),
    "The checkpoint table is gone, or was restored": ("Refused",),
    "A resource was let go by hand": (),
    "A namespace stays Terminating": (),
    "Nobody leads": (),
    "The operator is behind": (),
}
"""Headings in the page's order, and the reasons of conditions that lead there. A reason may lead to several."""


def link(heading: str) -> str:
    """To a heading of the page, on the page."""
    return f"[{heading}](#{slug(heading)})"


def symptoms() -> str:
    """Every runbook, with the reasons and the alerts that lead to it."""
    alerts = ALERT.findall(ALERTS.read_text())

    def row(heading: str, reasons: Iterable[str]) -> tuple[str, str, str]:
        return link(heading), ", ".join(f"`{reason}`" for reason in reasons), ", ".join(f"`{name}`" for name, to in alerts if to == slug(heading))

    return table(("symptom", "reasons", "alerts"), [row(ANY, ()), *(row(*each) for each in RUNBOOKS.items())])


def failures() -> str:
    """Every reason of a failure: what the operator does, what you do, and the runbook."""
    rows = [(f"`{reason}`", advice.does, advice.do, _links(reason)) for reason, advice in FAILURES.items()]
    others = ("any other reason that a driver gives", OTHERS.does, OTHERS.do, link("A driver fails again and again"))
    return table(("reason", "the operator", "you", "runbook"), [*rows, others])


def _links(reason: str) -> str:
    return ", ".join(link(heading) for heading, reasons in RUNBOOKS.items() if reason in reasons)
