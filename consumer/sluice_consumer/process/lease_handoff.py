"""What a driver receives from its supervisor: permission to start Spark, its epoch, then the send time of every accepted heartbeat.

The rules are in docs/protocol.md, "An epoch". The driver watches the lease itself, because a supervisor that is stopped (a signal, a debugger, swap)
can neither beat nor kill. A thread of the driver does it, so it shares the fate of the process that works. Native code that holds the interpreter's
lock holds the thread up. A timer outside of Python (`faulthandler.dump_traceback_later`) would not be held up, but could not hear of new heartbeats.
It would end a healthy driver, and again in each replay of that batch. It would also leave the JVM to its own shutdown; a signal to the process group
does not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from io import FileIO
from typing import Any

WORKING = 2 / 3  # of the lease: how long an epoch works on after the send of its last accepted heartbeat


@dataclasses.dataclass(frozen=True)
class LeaseHandoff:
    """What the supervisor hands down on standard input once it holds the lease.

    Attributes:
        sent: when the take was sent: the first accepted beat, on this machine's monotonic clock.
    """

    generation: int
    token: str
    how: str
    waitOutMillis: int  # noqa: N815 - as it travels
    reportNumber: int  # noqa: N815
    sent: float

    @staticmethod
    def read(source: FileIO) -> LeaseHandoff:
        """Waits for them. Their absence means that there is no lease, or no supervisor any more."""
        return LeaseHandoff(**_line(source))


def permission(source: FileIO) -> dict[str, str]:
    """Waits until the supervisor has found nothing that speaks against a start; gives what its checks found for the environment of Spark."""
    return _line(source)


def _line(source: FileIO) -> dict[str, Any]:
    line = source.readline()
    if not line.endswith(b"\n"):
        sys.exit("the supervisor gave no orders")
    document: dict[str, Any] = json.loads(line)
    return document


def standard_input() -> FileIO:
    """Takes the pipe off standard input, so that no program that the user's function starts reads heartbeats from it."""
    pipe = FileIO(os.dup(0))
    with FileIO(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    return pipe


def end_group() -> None:
    """Kills this process and its group: the JVM works on behalf of the same lease. Says nothing first, since that may block."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


class Guard:
    """Ends the driver's process group once no beat that was sent in the last two thirds of the lease has been accepted."""

    def __init__(
        self, source: FileIO, lease: float, sent: float, end: Callable[[], None] = end_group, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.source, self.lease, self.sent, self.end, self.clock = source, lease, sent, end, clock

    def start(self) -> None:
        """Watches in a thread of its own."""
        threading.Thread(target=self.run, name="lease", daemon=True).start()

    def run(self) -> None:
        """Watches until the lease is over. Whatever goes wrong with the watching ends the driver too."""
        try:
            while self._hears():
                pass
        finally:
            self.end()

    def _hears(self) -> bool:
        """Waits for the next beat. One that has arrived counts before the clock does: this process may have been paused."""
        left = self.sent + self.lease * WORKING - self.clock()
        if not select.select([self.source], [], [], max(0.0, left))[0]:
            return False
        line = self.source.readline()
        with contextlib.suppress(ValueError):
            self.sent = max(self.sent, float(line))
            return True
        return False  # the supervisor is gone
