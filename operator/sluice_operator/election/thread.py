"""The election as it runs in a process: a thread that takes the candidate's turns, and one that ends the process in time.

The second thread needs nothing: no event loop, no API server, no lock. A leader whose calls hang still ends on time.
`LeaderOnly` stands before every write, so that a pass that was under way ends at its next one.
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
    """End the process at once: no cleaning up, which might still write, and no waiting for a log that nobody reads."""
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
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Hand over to the next one. Only when nothing of ours acts any more. A turn that hangs is not waited for long; then others wait."""
        self._ended.set()
        for thread in self._threads:
            thread.join(LAST_TURN)
        if not any(thread.is_alive() for thread in self._threads):
            self._candidate.release()

    def _take_part(self) -> None:
        pause, announced = 0.0, False
        while not self._ended.wait(pause):
            try:
                pause = self._candidate.turn()
            except LostLeadership as error:
                if not self._ended.is_set():
                    self._leave(str(error))
                return
            except Exception:  # a follower whose thread ended would stand by for ever; `_watch` ends a leader in time
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
    """`Cluster` with every write refused unless `leads`; reading is free."""

    def __init__(self, cluster: Cluster, leads: Callable[[], bool]) -> None:
        self._cluster, self._leads, self._closed = cluster, leads, False
        self.get, self.list, self.check = cluster.get, cluster.list, cluster.check

    def close(self) -> None:
        """Refuse every write from now on."""
        self._closed = True

    def create(self, body: Json) -> Json:
        """See Cluster."""
        self._check()
        return self._cluster.create(body)

    def replace_status(self, body: Json) -> Json:
        """See Cluster."""
        self._check()
        return self._cluster.replace_status(body)

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        """See Cluster."""
        self._check()
        return self._cluster.patch(kind, namespace, name, changes)

    def delete(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        """See Cluster."""
        self._check()
        self._cluster.delete(kind, namespace, name, uid, grace)

    def _check(self) -> None:
        if self._closed or not self._leads():
            raise NotLeader("this operator does not lead")


class NotLeader(Unavailable):
    """Nothing was sent."""
