"""How a driver or supervisor ends: exit codes, and the message that Kubernetes shows (docs/interfaces.md)."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import textwrap
from dataclasses import dataclass
from typing import NoReturn

from sluice_checkpoints import termination_log
from sluice_checkpoints.errors import SluiceError

OWN_WORD = "SLUICE_OWN_WORD"  # in a driver's environment: the number of the file for its word
WORD_BYTES = 64  # for the word, then for the mark
READY = "ready"  # the mark of a driver that stands by, once Spark and the pipeline are ready
NAMES = 1500  # characters of consumers in an exit message
MORE = "…"  # after them, if some have no room; no consumer has this name
COLUMNS = 150  # of a line of the exit message
UNCLEAN = 10  # driver to supervisor only: drained, but a task may still be working; do not release
QUIET = 0x80  # driver to supervisor only, added to another code than 0: no task can still be working; release
END_REACHED = "EndReached"  # of a run with `until`: nothing is left to do; not Kubernetes' own Completed, which any exit 0 has
STOPPED = "stopped before the end of the run was reached"


class Interrupted(SluiceError):
    """A run with an end (`until`) was stopped before it got there. What was processed is committed, the rest is not. Run it again."""

    exit_code = 75


class Stopped(SluiceError):
    """SIGTERM came before there was a driver to drain."""

    exit_code = 0


@dataclass(frozen=True)
class Ending:
    """An exit code and why, in words for a person.

    Attributes:
        quiet: no process of this epoch can still be working, so that its lease may be released.
        screen: the same for a screen, in lines; "" where reason and message say it.
        working: of a group, consumers whose `process` was running, or that are the cause.
    """

    code: int
    reason: str
    message: str
    quiet: bool = False
    screen: str = ""
    working: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The exit status of a driver, for its supervisor."""
        if self.code:
            return self.code | QUIET if self.quiet else self.code
        return 0 if self.quiet else UNCLEAN


class OwnWord:
    """The file in memory in which a driver says with which status it ends, just before it does (`child_process.DriverProcess`).

    An exit status alone proves nothing: `os._exit(0)` in `process`, or `exit(0)` in native code, has that of a clean drain. The file also holds what
    its timer is armed for (`armed_timer`), and before its first batch whether it is `READY`. A mark overwrites the previous one, and waits for no
    reader as a line in a pipe would.
    """

    pipe: int | None = None  # of this process, once `open` was called; None: nobody listens

    @classmethod
    def mark(cls, armed: object | None) -> None:
        """Says what the timer is armed for, or `READY`; None: neither."""
        if cls.pipe is not None:
            with contextlib.suppress(OSError):  # as in `leave`: whoever does not listen
                os.pwrite(cls.pipe, str(armed or "").encode().ljust(WORD_BYTES)[:WORD_BYTES], WORD_BYTES)

    @classmethod
    def open(cls) -> None:
        """Takes the file from the environment, so that no program that the user's function starts inherits it."""
        if (number := os.environ.pop(OWN_WORD, None)) is not None:
            cls.pipe = int(number)
            os.set_inheritable(cls.pipe, False)  # noqa: FBT003 - its only argument


def leave(status: int) -> NoReturn:
    """Ends this process at once, with its own word for the status. Nothing else may end a driver whose end is meant."""
    if OwnWord.pipe is not None:
        with contextlib.suppress(OSError):  # the supervisor is gone
            os.write(OwnWord.pipe, f"{status}\n".encode())
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # `process` may have closed it, or taken it away
            stream.flush()
    os._exit(status)


def unexplained(status: int) -> Ending:
    """The ending of a driver that did not give its word."""
    return Ending(
        1,
        "DriverExited",
        f"the driver process ended with exit status {status} before its work was done. `process`, or native code that it calls, may have ended it "
        "(os._exit, exit); the driver's log shows whether Python did. The open batch is not committed and comes again. Return from the function "
        "instead, or raise an error",
    )


def killed(status: int) -> Ending:
    """The ending of a driver that a signal ended."""
    return Ending(1, "DriverKilled", f"the driver process was killed by signal {-status} ({signal.Signals(-status).name})")


def decoded(status: int) -> tuple[int, bool]:
    """Exit code and `quiet` of a driver, from its exit status."""
    if status in {0, UNCLEAN}:
        return 0, status == 0
    return status & ~QUIET, bool(status & QUIET)


def ending_of(error: BaseException) -> Ending:
    """The ending that an error means."""
    if isinstance(error, SluiceError):
        return Ending(error.exit_code, type(error).__name__, str(error))
    cause = getattr(error, "java_exception", None)  # py4j's own words only say which call it was
    return Ending(1, type(error).__name__, str(error if cause is None else cause.toString()))


def java_words(error: BaseException) -> tuple[tuple[str, str], ...]:
    """Class and message of the exceptions of Java that an error stands for, the outermost first."""
    of_java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if of_java is None:
        return ()
    from sluice_consumer.sinks import edge  # noqa: PLC0415 - PySpark, which a supervisor has no use for

    return tuple((thrown.name, thrown.message) for thrown in edge.chain(error))


def report(ending: Ending) -> None:
    """Writes the message to stderr and, in a container, to its termination log. A failure to write that log is only said."""
    _say(folded(ending.screen or f"{ending.reason}: {ending.message}"))
    named = {"working": _fitting(ending.working)} if ending.working else {}
    if problem := termination_log.write({"reason": ending.reason, "message": ending.message, **named}):
        _say(f"no termination message was left: {problem}")


def _fitting(names: tuple[str, ...]) -> list[str]:
    """The first of these names that leave room for a message, and a mark if some are left out."""
    fitting = [name for at, name in enumerate(names) if sum(map(len, names[: at + 1])) <= NAMES]
    return fitting if len(fitting) == len(names) else [*fitting, MORE]


def finish(ending: Ending) -> int:
    """Says how a supervisor ends, unless its driver has said why, and returns the exit code."""
    if ending.reason:
        report(ending)
    return ending.code


def _say(line: str) -> None:
    with contextlib.suppress(Exception):  # `process` may have closed it: the termination log and the exit status remain
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - the exit message of a program


def folded(message: str) -> str:
    """A message in lines that fit a screen; words stay whole, so that a name or a path can be copied."""
    fold = textwrap.TextWrapper(COLUMNS, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(line for each in message.splitlines() for line in fold.wrap(each))
