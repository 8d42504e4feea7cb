"""Write events to the API server. An event that cannot be written becomes a log line; no error is raised.

A thread of their own writes them, in order, so that no reconcile waits for them (as with client-go's recorder).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Semaphore
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
MOST = 10_000  # events that wait, some 2 KB each
LAST_WORDS = 3.0  # seconds for those that still wait when the process ends


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
    digest = hashlib.sha256(f"{meta['uid']}{event.reason}{event.message}{stamp}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name']}.{digest}", "namespace": meta["namespace"]},
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


class EventWriter:
    """`Cluster` whose events are written later, in order: `create` of an event returns at once, with its body.

    An event that cannot be written becomes a log line. Events are written one call at a time, beside the calls of reconciles, so they may
    be late. After `stop` they are written at once.
    """

    def __init__(self, cluster: Cluster, most: int = MOST) -> None:
        self._cluster, self._most, self._room = cluster, most, Semaphore(most)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="events")
        self.get, self.list, self.check = cluster.get, cluster.list, cluster.check
        self.replace_status, self.patch, self.delete = cluster.replace_status, cluster.patch, cluster.delete

    async def start(self) -> None:
        """The thread begins with the first event."""

    async def stop(self) -> None:
        """Write the events that wait, for at most 3 s."""
        written = asyncio.create_task(asyncio.to_thread(self._writer.shutdown))
        await asyncio.wait({written}, timeout=LAST_WORDS)
        self._writer.shutdown(wait=False, cancel_futures=True)

    def create(self, body: Json) -> Json:
        return self._later(body) if body["kind"] == "Event" else self._cluster.create(body)

    def _later(self, body: Json) -> Json:
        if not self._room.acquire(blocking=False):
            LOG.warning("event %s not written: %d others wait", body["reason"], self._most)
            return body
        try:
            written = self._writer.submit(post, self._cluster, body)
        except RuntimeError:  # stopped
            return self._cluster.create(body)
        written.add_done_callback(self._written)
        return body

    def _written(self, done: Future[None]) -> None:
        self._room.release()
        if not done.cancelled() and (error := done.exception()):
            LOG.error("an event was not written", exc_info=error)
