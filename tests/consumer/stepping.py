"""Attempts that work side by side, in an order that a test decides."""

from __future__ import annotations

import threading


class Died(BaseException):
    """The process of an attempt ended."""


class SteppedAttempt:
    """One attempt in a thread of its own, which takes a step only when it is told to, and may be told to die instead.

    Attributes:
        alive: False lets it die before its next step.
        over: it has ended, however it did.
        returned: it has ended without an error.
        errors: what it may end with; any other error fails the test.
    """

    errors: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        self.alive, self.over, self.returned = True, False, False
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self._run, daemon=True).start()
        self._done.acquire()

    def step(self) -> None:
        if not self.over:
            self._go.release()
            self._done.acquire()

    def end(self) -> None:
        while not self.over:
            self.step()

    def die(self) -> None:
        self.alive = False
        self.end()

    def _work(self) -> None:
        """What it does; `_pause` stands before every step."""
        raise NotImplementedError

    def _run(self) -> None:
        try:
            self._work()
            self.returned = True
        except (Died, *self.errors):
            pass
        finally:
            self.over = True
            self._done.release()

    def _pause(self) -> None:
        self._done.release()
        self._go.acquire()
        if not self.alive:
            raise Died
