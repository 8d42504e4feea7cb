"""Simulated processes: real code in threads of which exactly one runs, and only when the scheduler says so.

The code under test is synchronous and calls its ports; every port call comes by `Process.pause`, hands the turn back to the scheduler and waits for
the next one. So a test decides every interleaving, and a crash is an exception that nothing of ours catches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


class Killed(BaseException):
    """The process was killed where it stood."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a process cannot go on: until a time, or until something is true."""

    wake: float | None = None
    ready: Callable[[], bool] | None = None


class Process:
    """One simulated process.

    Attributes:
        at: the call it stands before.
        waiting: why it cannot go on, or None.
        fault: what goes wrong with the call it stands before, or None; taken by whoever makes the call.
        done, error: it ended, and with which exception.
    """

    def __init__(self, name: str, body: Callable[[Process], None]) -> None:
        self.name, self._body = name, body
        self.at = "start"
        self.fault: str | None = None
        self.waiting: Waiting | None = None
        self.done = self._killed = False
        self.error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()

    # -- the scheduler's side ------------------------------------------------------------------------------------------------------

    def resume(self, fault: str | None = None) -> None:
        """Lets it run up to its next call, or to its end."""
        self.fault, self.waiting = fault, None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()
        else:
            self._go.release()
        self._back.acquire()

    def kill(self) -> None:
        if self.done:
            return
        self._killed = True
        if self._thread is None:
            self.done, self.error = True, Killed()
        else:
            self.resume()
            assert self.done, f"{self.name} survived its death at {self.at}"

    @property
    def killed(self) -> bool:
        return isinstance(self.error, Killed)

    # -- the process's side --------------------------------------------------------------------------------------------------------

    def pause(self, at: str, waiting: Waiting | None = None) -> str | None:
        """Stands before a call until it is this process's turn again; returns what is to go wrong with the call."""
        if self._killed:
            raise Killed
        self.at, self.waiting = at, waiting
        self._back.release()
        self._go.acquire()
        if self._killed:
            raise Killed
        fault, self.fault = self.fault, None
        return fault

    def _run(self) -> None:
        try:
            self._body(self)
        except BaseException as error:  # noqa: BLE001 - the scheduler decides what it means
            self.error = error
        finally:
            self.done = True
            self._back.release()
