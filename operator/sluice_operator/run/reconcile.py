"""One reconcile of one resource: observe, plan, decide, record, apply.

The cache says whether there is anything to do. Actions are planned from a live read, because a cache may be minutes old.
A reconcile that is cut off anywhere is repeated.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.apply.execute import ActionContext, add_finalizer, apply
from sluice_operator.cluster.port import Conflict, Rejected
from sluice_operator.observe.cache import version_of
from sluice_operator.plan.live_read_policy import needs_live_read
from sluice_operator.plan.pools import plan_view
from sluice_operator.plan.write_policy import BATCHED_EVERY, WriteContext, WriteTime, only_told, urgent, write_time
from sluice_operator.run import schedule
from sluice_operator.run.live_read import cached_view, live_read, overdue
from sluice_operator.run.refusals import action_accepted, action_refused, conflict, status_refused
from sluice_operator.run.schedule import ReconcileResult
from sluice_operator.run.shared import key_of
from sluice_operator.run.status_write import send_events, tell, write_status
from sluice_operator.state.actions import AddFinalizer

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.cluster.port import Json
    from sluice_operator.observe.cache import ResourceKey
    from sluice_operator.run.shared import ReconcileContext
    from sluice_operator.state.actions import Plan
    from sluice_operator.state.view import View

STATUS = "status"


def reconcile(context: ReconcileContext, key: ResourceKey, now: datetime, *, force_refresh: bool = False) -> ReconcileResult:
    """One reconcile.

    Args:
        context: what the reconciles of this process share.
        key: of the resource.
        now: in whole seconds, UTC.
        force_refresh: read live even if the cache says that nothing is to be done; a watch that was interrupted does not show deletions.

    Raises:
        ApiError: nothing is known about the last call. Reconcile again after a pause.
        ValueError: this operator did not write the stored status.
    """
    body = context.cache.body(key)
    if body is None:
        context.forget(key)
        return ReconcileResult(None)
    result = _reconcile(context, key, body, now, force_refresh=force_refresh)
    return replace(result, figures=schedule.figures_due(context, key, now))


def _reconcile(context: ReconcileContext, key: ResourceKey, body: Json, now: datetime, *, force_refresh: bool) -> ReconcileResult:
    """Observe from the cache, plan, decide; if there is something to do: observe live, plan, decide, record, apply."""
    view = cached_view(context, key, body, now)
    intent = plan_view(view)
    force_refresh = force_refresh or overdue(context, key, view)
    if not force_refresh and (wait := _decide(context, view, intent)):
        return wait
    if force_refresh or needs_live_read(view, intent):
        taken = None
        with suppress(Conflict):  # the live read shows what it is now
            taken = take_over(context, view, intent)
        live = live_read(context, key, now, body, taken)
        if live is None:
            context.cache.lost(key, version_of(body))
            return schedule.soon(now)
        body, view = live
        intent = plan_view(view)
    return _decide(context, view, intent) or _carry_out(context, body, view, intent)


def _decide(context: ReconcileContext, view: View, intent: Plan) -> ReconcileResult | None:
    """When to reconcile next, if nothing is recorded or applied now; None: something is."""
    if (until := context.unwritable.get(key_of(view))) and view.now < until:  # no action is taken that the status does not name, but a deletion's
        return None if view.resource.deleting and intent.actions else ReconcileResult(until)
    if intent.actions:
        return None
    if intent.status != view.status:
        context.written.setdefault(key_of(view), view.now)  # else a process that has just started would write the figures of all at once
    when = _write_time(context, view, intent)
    if when is WriteTime.NEVER:
        return schedule.unchanged(context, view, intent)
    return _later(context, view, intent) if when is WriteTime.LATER else None


def _later(context: ReconcileContext, view: View, intent: Plan) -> ReconcileResult:
    """As planned; if an urgent change has to wait, when it may be written."""
    planned = schedule.as_planned(context, intent, view.now)
    if planned.wake is None or not urgent(view.status, intent.status):
        return planned
    return replace(planned, wake=min(planned.wake, context.written[key_of(view)] + BATCHED_EVERY))


def _write_time(context: ReconcileContext, view: View, intent: Plan) -> WriteTime:
    key = key_of(view)
    about = WriteContext(
        now=view.now,
        written=context.written.get(key, view.now),
        resources=len(context.looked),
        acting=bool(intent.actions),
        wake=intent.wake,
        at_once=context.at_once.recent(key, STATUS, view.now),
    )
    return write_time(view.status, intent.status, about)


def _carry_out(context: ReconcileContext, body: Json, view: View, intent: Plan) -> ReconcileResult:
    """Record, then apply. A conflict is not an error: the resource has changed since, and the next reconcile sees it."""
    try:
        if intent.actions == (AddFinalizer(),):
            take_over(context, view, intent)
            return schedule.soon(view.now)
        view = _record(context, body, view, intent)
    except Conflict as error:
        return conflict(view, error)
    except Rejected as error:
        waits = status_refused(context, view, error)
        if not view.resource.deleting or not intent.actions:
            return waits
        view = view.with_status(intent.status)  # a deletion continues: it only ends what there is
    try:
        if not _apply(context, view, intent):
            return schedule.soon(view.now)
    except Conflict as error:
        return conflict(view, error)
    return replace(schedule.soon(view.now), acted=True) if intent.actions else schedule.as_planned(context, intent, view.now)


def _record(context: ReconcileContext, body: Json, view: View, intent: Plan) -> View:
    """Write the status if it is time, and send the events of what was decided. The view of what is stored then."""
    decided = replace(intent, events=tuple(event for event in intent.events if event.after is None))
    refused = view.now < context.unwritable.get(key_of(view), view.now)
    if _write_time(context, view, intent) is WriteTime.NOW and not refused:
        if not intent.actions and urgent(view.status, intent.status) and only_told(view.status, intent.status):
            context.at_once.take(key_of(view), STATUS, view.now)
        view = write_status(context, body, view, decided)
    elif decided.events:  # an earlier reconcile wrote the status
        context.on_status_written(view, decided)
    tell(context, view, decided.events)
    return view.with_status(intent.status)


def _apply(context: ReconcileContext, view: View, intent: Plan) -> bool:
    """Take the actions, and send the events of each that was done. False: one was refused, and those after it are not taken."""
    about = ActionContext(context.cluster, view, context.settings)
    for action in intent.actions:
        try:
            apply(about, action)
        except Rejected as error:
            action_refused(context, view, action, error)
            return False
        send_events(context, view, replace(intent, events=tuple(event for event in intent.events if event.after == action)))
    if intent.actions:
        action_accepted(context, view, intent.actions)
    return True


def take_over(context: ReconcileContext, view: View, intent: Plan) -> Json | None:
    """Add the finalizer, if that is the plan and the resource is still as it was seen.

    Returns:
        The resource as it is then: the answer to the write saves a read. None if no finalizer was added.

    Raises:
        Conflict: the resource has changed since.
    """
    if intent.actions != (AddFinalizer(),):
        return None
    try:
        body = add_finalizer(ActionContext(context.cluster, view, context.settings))
    except Rejected as error:
        action_refused(context, view, AddFinalizer(), error)
        return None
    context.refusals.pop(key_of(view), None)
    send_events(context, view, intent)
    return body
