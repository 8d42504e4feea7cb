"""Events are written by a thread of their own, in order, so that no reconcile waits for them (as with client-go's recorder)."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Semaphore
from typing import TYPE_CHECKING

from sluice_operator.apply.events import post

if TYPE_CHECKING:
    from sluice_operator.cluster.port import Cluster, Json

LOG = logging.getLogger("sluice")
MOST = 10_000  # events that wait, some 2 KB each
LAST_WORDS = 3.0  # seconds for those that still wait when the process ends


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
