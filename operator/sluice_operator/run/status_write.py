"""Write a status, if the resource is still as it was seen; and send the events that go with it."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.apply.events import announce
from sluice_operator.cluster.port import Rejected
from sluice_operator.observe import parse
from sluice_operator.observe.cache import version_of
from sluice_operator.run.shared import key_of
from sluice_operator.state.serialization import dropped, dump_status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice_operator.cluster.port import Json
    from sluice_operator.run.shared import ReconcileContext
    from sluice_operator.state.actions import EventToSend, Plan
    from sluice_operator.state.status import Status
    from sluice_operator.state.view import View

LOG = logging.getLogger("sluice")
API = "sluice.dev/v1alpha1"


def write_status(context: ReconcileContext, body: Json, view: View, intent: Plan) -> View:
    """Replace the status.

    Returns:
        The view with the resource as it is stored now.

    Raises:
        Conflict: the resource has changed since it was seen.
        Rejected: the API server refused the status, or the CRD is older than this operator and dropped a field. No action may follow,
            because the status is the write-ahead log.
    """
    status, key = intent.status, key_of(view)
    document = dump_status(status)
    written = context.cluster.replace_status(with_status(body, document, context.kind))
    context.cache.answered(written, version_of(body))
    if lost := dropped(document, written.get("status")):
        raise Rejected("CrdOutdated", f"the CRD does not know {lost}; install the CRD of this operator's version")
    context.unwritable.pop(key, None)
    context.written[key] = view.now
    if _line(status) != _line(view.status):
        LOG.info("%s/%s: %s", *key, _line(status))
    context.on_status_written(view, intent)
    return replace(view, resource=parse.resource(written, view.resource.kind))


def with_status(body: Json, status: Json, kind: str) -> Json:
    """What replaces the status of a resource. Its spec stays as it is stored, even where it is nested too deeply to be read."""
    meta = {key: value for key, value in body["metadata"].items() if key != "managedFields"}  # as deep as the spec
    return {"apiVersion": body.get("apiVersion") or API, "kind": kind, "metadata": meta, "status": status}


def send_events(context: ReconcileContext, view: View, intent: Plan) -> None:
    """Count the plan's events and send them."""
    if intent.events:
        context.on_status_written(view, intent)
        tell(context, view, intent.events)


def tell(context: ReconcileContext, view: View, events: Iterable[EventToSend]) -> None:
    """Send the events, except those of a reason that was sent often lately."""
    key = key_of(view)
    new = [event for event in events if context.event_limit.take(key, event.reason, view.now)]
    announce(context.cluster, view, new, context.settings.identity)


def _line(status: Status) -> str:
    ready = status.condition("Ready")
    return f"{status.phase} {ready.reason} {ready.message}" if ready else status.phase
