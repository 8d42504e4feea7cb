"""What runs beside kopf as long as the process does: the audits of watches, and the reconciles of a leader."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from sluice_operator.observe.watch_health import AUDIT_EVERY, audited

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.election.thread import Election, LeaderOnly
    from sluice_operator.observe.watch_health import Freshness, Lister
    from sluice_operator.run.loops import Loops
    from sluice_operator.run.pool_events import BothLoops

LOG = logging.getLogger("sluice")


class Audits:
    """Compares watches with lists every 30 s, on a thread."""

    def __init__(self, freshness: Freshness, lister: Lister, namespaces: tuple[str, ...]) -> None:
        self._work = (freshness, lister, namespaces)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start with an audit at once."""
        self._task = asyncio.create_task(self._audit(), name="audits")

    async def stop(self) -> None:
        """Stop the audits."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _audit(self) -> None:
        while True:
            await asyncio.to_thread(audited, *self._work)
            await asyncio.sleep(AUDIT_EVERY)


class LeaderService:
    """Reconciles resources as soon as this process is elected; at once without an election."""

    def __init__(self, loops: Loops | BothLoops, port: LeaderOnly, election: Callable[[Callable[[], None]], Election] | None) -> None:
        self._loops, self._port, self._make = loops, port, election
        self._election: Election | None = None

    async def start(self) -> None:
        """Take part in the election."""
        if self._make is None:
            self._loops.lead()
            return
        loop = asyncio.get_running_loop()
        self._election = self._make(lambda: _call_soon(loop, self._loops.lead))
        self._election.start()

    async def stop(self) -> None:
        """Close the port to writes, wait until no reconcile runs, and only then release the Lease."""
        self._port.close()
        ended = await self._loops.stop()
        if self._election is not None and ended:
            await asyncio.to_thread(self._election.stop)
        elif self._election is not None:
            LOG.warning("a reconcile does not end, so the Lease is not released; the next leader waits until it expires")


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop ended in this very moment
        loop.call_soon_threadsafe(call)
