"""Write events to the API server. An event that cannot be written becomes a log line; no error is raised."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from sluice_operator.cluster.port import ApiError
from sluice_operator.names import printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sluice_operator.cluster.port import Cluster, Json
    from sluice_operator.state.actions import EventToSend
    from sluice_operator.state.view import View

LOG = logging.getLogger("sluice")
LONGEST = 1024  # the API's own limit for a message


def announce(cluster: Cluster, view: View, events: Iterable[EventToSend], reporter: str) -> None:
    """Write each event. Its name depends on message and time, so a repeated reconcile does not write it twice."""
    for event in events:
        LOG.info("%s/%s: event %s: %s", view.resource.namespace, view.resource.name, event.reason, printable(event.message))
        resource = view.resource
        meta = {
            "namespace": resource.namespace,
            "name": resource.name,
            "uid": resource.uid,
            "resourceVersion": resource.version,
            "kind": resource.kind,
        }
        post(cluster, body(meta, event, view.now, reporter))


def post(cluster: Cluster, event: Json) -> None:
    """Write one event."""
    try:
        cluster.create(event)
    except ApiError as error:
        LOG.warning("event %s not written: %s", event["reason"], error)


def body(meta: Json, event: EventToSend, now: datetime, reporter: str) -> Json:
    """A core/v1 Event about the resource with this metadata, and its kind beside it."""
    stamp = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    said = hashlib.sha256(f"{meta['uid']}{event.reason}{event.message}{stamp}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name']}.{said}", "namespace": meta["namespace"]},
        "involvedObject": {
            "apiVersion": "sluice.dev/v1alpha1",
            **{key: meta[key] for key in ("kind", "namespace", "name", "uid", "resourceVersion")},
        },
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "message": printable(event.message[:LONGEST]),
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
        "source": {"component": "sluice-operator"},
        "reportingComponent": "sluice-operator",
        "reportingInstance": reporter,
    }
