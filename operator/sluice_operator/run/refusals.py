"""Calls that failed, and how they are reported. A refused action becomes a condition, a refused status an event."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.apply.events import announce, body, post
from sluice_operator.cluster.port import CONSUMER_KIND, ApiError
from sluice_operator.plan.events import Reason
from sluice_operator.run.schedule import ReconcileResult, soon
from sluice_operator.run.shared import Refusal, key_of
from sluice_operator.state.actions import EventToSend
from sluice_operator.state.objects import Trouble

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.cluster.port import Conflict, Rejected
    from sluice_operator.observe.cache import ResourceKey
    from sluice_operator.run.shared import ReconcileContext
    from sluice_operator.state.view import View

LOG = logging.getLogger("sluice")
REPEAT_REFUSED = timedelta(seconds=30)


def action_refused(context: ReconcileContext, view: View, error: Rejected) -> None:
    """Remember it: the next plan says so in the conditions, and repeats the action after 30 s."""
    trouble = Trouble("ApiRefused", str(error))
    context.refusals[key_of(view)] = Refusal(trouble, view.resource.generation, view.now + REPEAT_REFUSED)


def status_refused(context: ReconcileContext, view: View, error: Rejected) -> ReconcileResult:
    """Try again in 30 s. A condition cannot say it, so an event does, once."""
    key = key_of(view)
    if key not in context.unwritable:
        announce(context.cluster, view, (EventToSend(Reason.STATUS_REFUSED, str(error), warning=True),), context.settings.identity)
    context.unwritable[key] = view.now + REPEAT_REFUSED
    return ReconcileResult(context.unwritable[key])


def conflict(view: View, error: Conflict) -> ReconcileResult:
    """The resource or a pod changed since it was seen. Reconcile again, from a new view."""
    LOG.info("%s/%s: %s; reconciling again", *key_of(view), error)
    return soon(view.now)


def report_failing(context: ReconcileContext, key: ResourceKey, why: str, now: datetime) -> None:
    """Send an event: a reconcile that fails writes no status. If the resource cannot be read either, write a log line."""
    try:
        resource = context.cluster.get(CONSUMER_KIND, *key)
    except ApiError as error:
        LOG.warning("%s/%s: %s", *key, error)
        return
    if resource is not None:
        event = EventToSend(Reason.RECONCILE_FAILED, f"the operator cannot reconcile this resource: {why}", warning=True)
        post(context.cluster, body(resource["metadata"], event, now, context.settings.identity))
