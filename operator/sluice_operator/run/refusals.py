"""Calls that failed, and how they are reported. A refused action becomes a condition, a refused status an event."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.apply.events import announce, body, post
from sluice_operator.cluster.port import ApiError
from sluice_operator.plan.advice import advised
from sluice_operator.plan.events import Reason
from sluice_operator.plan.standby_terms import is_spare
from sluice_operator.run.schedule import ReconcileResult, soon
from sluice_operator.run.shared import Refusal, key_of
from sluice_operator.run.status_write import with_status
from sluice_operator.state.actions import EventToSend
from sluice_operator.state.objects import Trouble
from sluice_operator.state.serialization import dump_status, load_status
from sluice_operator.untrusted.values import WORDS, Unreadable, objects, part, text, whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sluice_operator.cluster.port import Conflict, Json, Rejected
    from sluice_operator.observe.cache import ResourceKey
    from sluice_operator.run.shared import ReconcileContext
    from sluice_operator.state.actions import Action
    from sluice_operator.state.view import View

LOG = logging.getLogger("sluice")
REPEAT_REFUSED = timedelta(seconds=30)


def action_refused(context: ReconcileContext, view: View, action: Action, error: Rejected) -> None:
    """Remember it: the next plan says so in the conditions, and repeats the action after 30 s."""
    trouble = Trouble("ApiRefused", str(error))
    context.refusals[key_of(view)] = Refusal(trouble, view.resource.generation, view.now + REPEAT_REFUSED, is_spare(view, action))


def action_accepted(context: ReconcileContext, view: View, actions: Sequence[Action]) -> None:
    """The last refusal is over. That of a standby is not, while only the driver's actions are taken: its own is repeated in its time."""
    known, key = context.refusals.get(key_of(view)), key_of(view)
    waits = known is not None and known.standby and view.status.standby is not None
    if not waits or any(is_spare(view, action) for action in actions):
        context.refusals.pop(key, None)


def status_refused(context: ReconcileContext, view: View, error: Rejected) -> ReconcileResult:
    """Try again in 30 s. No condition can be written, so an event reports it, once."""
    key = key_of(view)
    if key not in context.unwritable:
        announce(context.cluster, view, (EventToSend(Reason.STATUS_REFUSED, str(error), warning=True),), context.settings.identity)
    context.unwritable[key] = view.now + REPEAT_REFUSED
    return ReconcileResult(context.unwritable[key])


def conflict(view: View, error: Conflict) -> ReconcileResult:
    """The resource or a pod changed since it was seen. Reconcile again, from a new view."""
    LOG.info("%s/%s: %s; reconciling again", *key_of(view), error)
    return replace(soon(view.now), conflict=str(error))


def report_failing(context: ReconcileContext, key: ResourceKey, why: str, now: datetime) -> None:
    """Send an event and set the condition Stalled, for a reconcile that fails writes no status. What cannot be written becomes a log line."""
    try:
        resource = context.cluster.get(context.kind, *key)
        if resource is None:
            return
        event = EventToSend(Reason.RECONCILE_FAILED, f"the operator cannot reconcile this resource: {why}", warning=True)
        post(context.cluster, body({**resource["metadata"], "kind": context.kind}, event, now, context.settings.identity))
        if not isinstance(resource.get("status"), str):  # else it was not read, and what would replace it is not known
            context.cluster.replace_status(with_status(resource, _stalled(resource, why, now), context.kind))
    except ApiError as error:
        LOG.warning("%s/%s: %s", *key, error)
    except Exception:  # the loop continues, whatever is in the resource
        LOG.exception("%s/%s: its status could not be written, so it does not show that reconciles fail", *key)


def _stalled(resource: Json, why: str, now: datetime) -> Json:
    """The status as it is stored, with conditions that say what fails. The next reconcile that succeeds writes all of them again."""
    stored = part(resource, "status")
    with contextlib.suppress(Unreadable):
        stored = dump_status(load_status(stored))
    kept = [item for item in objects(stored, "conditions") if text(item, "type") not in ("Ready", "Reconciling", "Stalled")]
    generation = whole(part(resource, "metadata").get("generation")) or 0
    common = {"reason": str(Reason.RECONCILE_FAILED), "lastTransitionTime": f"{now:%Y-%m-%dT%H:%M:%SZ}", "observedGeneration": generation}
    name = text(part(resource, "metadata"), "name") or "NAME"
    words = advised(Reason.RECONCILE_FAILED, why, name, stalled=True)[:WORDS]
    new = [{**common, "type": kind, "status": status, "message": words} for kind, status in (("Ready", "Unknown"), ("Stalled", "True"))]
    return {**stored, "conditions": [*new, *kept]}
