"""When a resource is reconciled next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.plan import live_read_policy
from sluice_operator.plan.running import STALE
from sluice_operator.plan.write_policy import figures_interval
from sluice_operator.state.view import NEVER
from sluice_operator.untrusted.values import objects, part

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.observe.cache import ResourceKey
    from sluice_operator.run.shared import ReconcileContext
    from sluice_operator.state.actions import Plan
    from sluice_operator.state.view import View

SOON = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """When the next reconcile is due.

    Attributes:
        wake: at the latest then; None: the resource is gone.
        figures: before that time new figures alone cause no reconcile.
        acted: actions were taken. The watches show their outcome, so the next timed reconcile needs no forced live read.
        latest: each report puts `wake` off, to this time at most; None: reports do not.
        conflict: why a write was refused, if something had changed since it was seen.
    """

    wake: datetime | None
    figures: datetime | None = None
    acted: bool = False
    latest: datetime | None = None
    conflict: str | None = None


def soon(now: datetime) -> ReconcileResult:
    """In a second."""
    return ReconcileResult(now + SOON)


def as_planned(context: ReconcileContext, intent: Plan, now: datetime) -> ReconcileResult:
    """When the plan asks for it, or a live read is due."""
    return ReconcileResult(_next(context, intent, now))


def unchanged(context: ReconcileContext, view: View, intent: Plan) -> ReconcileResult:
    """The resource is as its status says. While the plan waits for nothing but the driver's silence, reports put the next reconcile off."""
    latest = min(view.now + live_read_policy.max_age(intent.status.phase, len(context.looked)), intent.look_by or NEVER)
    listening = intent.wake == view.last_report_at + STALE
    return ReconcileResult(max(_next(context, intent, view.now), view.now + SOON), latest=latest if listening else None)


def figures_due(context: ReconcileContext, key: ResourceKey, now: datetime) -> datetime:
    """When new figures are written. At once while a driver is not ready: any report may change that."""
    conditions = objects(part(context.cache.body(key), "status"), "conditions")
    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
    return context.written[key] + figures_interval(len(context.looked)) if ready and key in context.written else now


def _next(context: ReconcileContext, intent: Plan, now: datetime) -> datetime:
    latest = now + live_read_policy.max_age(intent.status.phase, len(context.looked))
    return min(intent.wake or latest, latest)
