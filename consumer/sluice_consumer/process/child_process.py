"""Starts the driver as the supervisor's child process, hands it the lease, and ends it."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence

from sluice_checkpoints.protocol.lease import TakenLease
from sluice_consumer.exits.ending import OWN_WORD, READY, WORD_BYTES
from sluice_consumer.process import sigterm
from sluice_consumer.process.lease_handoff import LeaseHandoff
from sluice_consumer.watchdog.armed_timer import ArmedTimer

log = logging.getLogger(__name__)
PARENT = "SLUICE_SUPERVISOR"
PR_SET_PDEATHSIG = 1
REAP_SECONDS = 10.0


def die_with_parent() -> None:
    """Makes the kernel kill this process when its supervisor dies, which may have happened before."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(os.environ.pop(PARENT)):
        sys.exit("the supervisor is gone")


class DriverProcess(subprocess.Popen[bytes]):
    """A driver in a process group of its own, with a pipe to its standard input, and a file in memory for its last word (`ending.OwnWord`)."""

    def __init__(self, command: Sequence[str], more: Mapping[str, int] | None = None) -> None:
        """`more`: further files that it inherits, by the variable of its environment that has their number."""
        more = more or {}
        self._writing = threading.Lock()
        self._word = os.memfd_create("word")
        environment = os.environ | {PARENT: str(os.getpid()), OWN_WORD: str(self._word)} | {name: str(number) for name, number in more.items()}
        super().__init__(command, env=environment, stdin=subprocess.PIPE, start_new_session=True, pass_fds=(self._word, *more.values()))

    def gave_its_word(self) -> bool:
        """Whether the driver, which is over, said itself that it ends with this exit status; a signal may make it say so twice."""
        return set(self._word_at(0).split()) == {str(self.returncode)}

    def armed(self) -> ArmedTimer | None:
        """What the driver's timer was armed for when it was over."""
        return ArmedTimer.parse(self._word_at(WORD_BYTES))

    def ready(self) -> bool:
        """Whether a driver that stands by could begin at once."""
        return self._word_at(WORD_BYTES).strip() == READY

    def _word_at(self, at: int) -> str:
        return os.pread(self._word, WORD_BYTES, at).replace(b"\0", b"").decode()

    def hand_down(self, line: str) -> bool:
        """Writes a line, which never waits: a driver that does not read finds thousands of earlier ones, and a dead one needs none.

        A heart's thread may write while another one closes the pipe; another file may have its number by then, so these two exclude each other.

        Returns:
            Whether it was written, so that the driver will read it if it lives.
        """
        assert self.stdin is not None  # noqa: S101 - it is a pipe
        with self._writing, contextlib.suppress(BrokenPipeError, BlockingIOError, ValueError):
            return os.write(self.stdin.fileno(), line.encode() + b"\n") > 0
        return False

    def close(self) -> None:
        """Closes the pipe and the file."""
        os.close(self._word)
        assert self.stdin is not None  # noqa: S101 - it is a pipe
        with self._writing:
            self.stdin.close()


@contextlib.contextmanager
def starting(command: Sequence[str], more: Mapping[str, int] | None = None) -> Iterator[DriverProcess]:
    """Starts the driver in a process group of its own; it dies when this process dies, when it may not start Spark, and when the lease is not taken.

    It imports while the checks are made, and starts Spark while the lease is waited for; without its orders a driver knows no epoch to fence, read or
    write with.
    """
    with sigterm.blocked():
        child = DriverProcess(command, more)
    assert child.stdin is not None  # noqa: S101 - it is a pipe
    os.set_blocking(child.stdin.fileno(), False)
    try:
        yield child
    except BaseException:
        end_group(child)
        raise
    finally:
        child.close()


def permit(child: DriverProcess, environment: Mapping[str, str]) -> None:
    """Lets a driver start Spark, with this in its environment."""
    child.hand_down(json.dumps(dict(environment)))


def order(child: DriverProcess, taken: TakenLease, number: int) -> None:
    """Hands a driver its epoch. One that has died since gets none; `Supervisor.watch` finds out why."""
    orders = LeaseHandoff(taken.epoch.generation, taken.epoch.token, taken.how, taken.wait_out_millis, number, taken.sent)
    child.hand_down(json.dumps(dataclasses.asdict(orders)))


def pass_on(child: DriverProcess, sent: float) -> None:
    """Informs a driver when an accepted heartbeat was sent."""
    child.hand_down(repr(sent))


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Kills what is left of the driver's process group (its JVM) and reaps the driver."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        log.debug("the driver's process group is gone")
    try:
        child.wait(REAP_SECONDS)
    except subprocess.TimeoutExpired:  # it waits in the kernel, for a disk or a network file system: it works no more, and ends with the pod
        log.warning("the driver process %d was killed and is not gone after %g s", child.pid, REAP_SECONDS)
