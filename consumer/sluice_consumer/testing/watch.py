"""One run of `process`: notes the moments at which it could be killed, or kills it at one of them, or lets a write fail there."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path

from sluice_consumer.testing.verdict import Failed, Killed, KillPoint

NOT_THE_USERS = ("py4j", "pyspark", "sluice_consumer.testing", "os", "shutil", "pathlib", "contextlib", "threading", "concurrent")


class WatchedRun:
    """See the module. Threads of `process` may share it.

    Attributes:
        points: the moments so far.
        dead: it was killed. From then on it makes no call that is watched, as a process that has ended makes none.
        failed: the write at `target` has failed, where that was asked for. What `process` does then is its own affair.
    """

    def __init__(self, target: KillPoint | None = None, *, fails: bool = False) -> None:
        self.target, self.points, self.dead, self.failed, self._fails = target, list[KillPoint](), False, False, fails
        self._seen, self._lock = Counter[tuple[str, str]](), threading.Lock()

    def at(self, when: str, what: str) -> None:
        """A moment.

        Raises:
            Killed: this is where it is killed, or it was killed before. Failed: this is the write that fails.
        """
        self.check()
        with self._lock:
            self._seen[when, what] += 1
            point = KillPoint(when, what, where(), self._seen[when, what])
            if when == "before" and self.points and self.points[-1].when == "after" and self.points[-1].where == point.where:
                return  # the same line: nothing happened since the moment after its former call
            self.points.append(point)
        if point == self.target and self._fails:
            self.failed = True
            raise Failed(f"a write failed: {point}")
        if point == self.target:
            self.kill()

    def check(self) -> None:
        """Nothing, while it lives.

        Raises:
            Killed: it was killed.
        """
        if self.dead:
            raise Killed(str(self.target))

    def kill(self) -> None:
        """Kills it.

        Raises:
            Killed: always.
        """
        self.dead = True
        self.check()


def where() -> str:
    """File and line of the innermost frame that is not of Python, PySpark or this package."""
    frame = sys._getframe(1)  # noqa: SLF001 - as `traceback` does, at a hundredth of its cost
    while frame.f_back is not None and is_in(frame.f_globals.get("__name__", ""), NOT_THE_USERS):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def is_in(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of these, or in one of them."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)
