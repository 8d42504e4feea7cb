"""The election in a process: one thread takes the candidate's turns, another ends the process when leadership is lost.

The second thread uses no event loop, no API server and no lock: a leader whose calls hang still ends in time.
`LeaderOnly` checks leadership before every write, so that a running reconcile ends at its next write.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

from sluice_operator.cluster.port import Unavailable
from sluice_operator.election.candidate import Candidate, LostLeadership

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.cluster.port import Cluster, Json

LOG = logging.getLogger("sluice")
WATCHED_EVERY = 0.25  # seconds; between `deadline` and `duration` lie five
LAST_TURN = 3.0  # seconds
AFTER_A_FAULT = 2.0  # seconds
LOST_LEADERSHIP = 70  # the process's exit code


def leave(reason: str) -> None:
    """End the process at once. There is no clean-up, which might write, and at most 1 s for the log."""
    threading.Timer(1.0, os._exit, (LOST_LEADERSHIP,)).start()
    LOG.critical("this operator leads no more: %s", reason)
    logging.shutdown()
    os._exit(LOST_LEADERSHIP)


class Election:
    """Takes part from `start` to `stop`. `elected` is called once, on the election's thread."""

    def __init__(self, candidate: Candidate, elected: Callable[[], None], leave: Callable[[str], None] = leave) -> None:
        self._candidate, self._elected, self._leave = candidate, elected, leave
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=target, name=target.__name__, daemon=True) for target in (self._take_part, self._watch)]

    def start(self) -> None:
        """Start both threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Release the Lease; call it when no reconcile runs any more. If a turn hangs for more than 3 s, the Lease is left to expire."""
        self._ended.set()
        for thread in self._threads:
            thread.join(LAST_TURN)
        if not any(thread.is_alive() for thread in self._threads):
            self._candidate.release()

    def _take_part(self) -> None:
        pause, announced = 0.0, False
        while not self._ended.wait(pause):
            try:
                pause = self._candidate.acquire_or_renew()
            except LostLeadership as error:
                if not self._ended.is_set():
                    self._leave(str(error))
                return
            except Exception:  # a follower whose thread ended would never lead; `_watch` ends a leader in time
                LOG.exception("a turn of the election failed")
                pause = AFTER_A_FAULT
                continue
            if not announced and self._candidate.leads():
                announced = True
                LOG.info("this operator leads")
                self._elected()

    def _watch(self) -> None:
        while not self._ended.wait(WATCHED_EVERY):
            if self._candidate.over() and not self._ended.is_set():
                self._leave("the Lease was not renewed in time")
                return


class LeaderOnly:
    """`Cluster` that refuses every write unless `leads`. Reads always go through."""

    def __init__(self, cluster: Cluster, leads: Callable[[], bool]) -> None:
        self._cluster, self._leads, self._closed = cluster, leads, False
        self.get, self.list, self.check = cluster.get, cluster.list, cluster.check

    def close(self) -> None:
        """Refuse every write from now on."""
        self._closed = True

    def create(self, body: Json) -> Json:
        self._check()
        return self._cluster.create(body)

    def replace_status(self, body: Json) -> Json:
        self._check()
        return self._cluster.replace_status(body)

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        self._check()
        return self._cluster.patch(kind, namespace, name, changes)

    def delete(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        self._check()
        self._cluster.delete(kind, namespace, name, uid, grace)

    def _check(self) -> None:
        if self._closed or not self._leads():
            raise NotLeader("this operator does not lead")


class NotLeader(Unavailable):
    """Nothing was sent."""
