"""How a driver or supervisor ends: exit codes, and the message that Kubernetes shows (docs/interfaces.md)."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass

from sluice_checkpoints.errors import SluiceError

LOG = "SLUICE_TERMINATION_LOG"
DEFAULT_LOG = "/dev/termination-log"
LIMIT = 4000  # bytes; Kubernetes keeps 4096
UNCLEAN = 10  # driver to supervisor only: drained, but a task may still be working; do not release
QUIET = 0x80  # driver to supervisor only, added to another code than 0: no task can still be working; release


class Interrupted(SluiceError):
    """A run until the tip was stopped before it got there. What was processed is committed, the rest is not. Run it again."""

    exit_code = 75


@dataclass(frozen=True)
class Ending:
    """An exit code and why, in words for a person.

    Attributes:
        quiet: no process of this epoch can still be working, so that its lease may be released.
    """

    code: int
    reason: str
    message: str
    quiet: bool = False

    @property
    def status(self) -> int:
        """The exit status with which a driver tells its supervisor."""
        if self.code:
            return self.code | QUIET if self.quiet else self.code
        return 0 if self.quiet else UNCLEAN


def understood(status: int) -> tuple[int, bool]:
    """Exit code and quiet of a driver that ended with a status."""
    if status in {0, UNCLEAN}:
        return 0, status == 0
    return status & ~QUIET, bool(status & QUIET)


def of(error: BaseException) -> Ending:
    """The ending that an error means."""
    if isinstance(error, SluiceError):
        return Ending(error.exit_code, type(error).__name__, str(error))
    cause = getattr(error, "java_exception", None)  # py4j's own words only say which call it was
    return Ending(1, type(error).__name__, str(error if cause is None else cause.toString()))


def report(ending: Ending) -> None:
    """Writes the message to the log and, where there is one, to the container's termination log."""
    print(f"{ending.reason}: {ending.message}", file=sys.stderr, flush=True)  # noqa: T201 - the last words of a program
    path = os.environ.get(LOG, DEFAULT_LOG)
    if path == DEFAULT_LOG and not os.path.exists(path):  # noqa: PTH110 - a device-like mount, only there in a pod
        return
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(fitting(ending))


def fitting(ending: Ending) -> str:
    """The JSON of an ending, its message cut so that all of it fits."""
    message = ending.message
    while True:
        text = json.dumps({"reason": ending.reason, "message": message})
        if len(text.encode()) <= LIMIT:
            return text
        message = message[: len(message) * 9 // 10 - 1] + "…"
