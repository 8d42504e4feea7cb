"""The supervisor's program of a group: `python -m sluice_consumer --config A --config B …` (docs/groups.md)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_consumer import logs
from sluice_consumer.checks import run as checks
from sluice_consumer.config import UntilConfig
from sluice_consumer.exits.ending import Ending, ending_of, finish
from sluice_consumer.group import shared_spark
from sluice_consumer.group.consumer_lease import ConsumerLease
from sluice_consumer.group.ends import exit_code
from sluice_consumer.group.messages import UP, Doing, DriverReads, Leave, Message, Over, line, parsed
from sluice_consumer.group.shared_spark import Member
from sluice_consumer.process import child_process
from sluice_consumer.process.child_process import DriverProcess, end_group
from sluice_consumer.process.sigterm import set_on_term
from sluice_consumer.process.supervisor import STOP_SECONDS
from sluice_consumer.watchdog.armed_timer import PROCESS

CHECKED_AT_ONCE = 4  # the first of each function imports it in a process of its own
LOOK_SECONDS = 0.5
PIPE_BYTES = 1 << 20  # what Linux allows anybody


@dataclass(frozen=True)
class GroupOptions:
    """What the command line says."""

    paths: Sequence[Path]
    master: str | None
    share: float
    until: UntilConfig | None
    check_seconds: float


@dataclass
class DriverPipe:
    """The driver process; see `DriverLink`. `ending`: why it is killed."""

    child: DriverProcess
    ending: Ending | None = None
    reads: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Forty consumers write a kilobyte a second. A heartbeat that has no room is one that was not heard."""
        assert self.child.stdin is not None  # noqa: S101 - `starting` made it
        with contextlib.suppress(OSError):  # where the system allows less, less has to do
            fcntl.fcntl(self.child.stdin, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def send(self, message: Message) -> bool:
        return self.child.hand_down(line(message).decode().rstrip("\n"))

    def kill(self, why: Ending) -> None:
        with self._lock:
            if self.ending is None:
                self.ending = why
                end_group(self.child)

    @property
    def gone(self) -> bool:
        return self.ending is not None or self.child.poll() is not None


def run(options: GroupOptions) -> int:
    """Runs the consumers until all have ended; the exit code of the program.

    Raises:
        Refused: no configuration can be used, or two of them cannot share a process.
    """
    members, refused, environment = checked(options)
    shared_spark.check(members)
    master, until = options.master, options.until.option if options.until else None
    given = {"--slot-share": repr(options.share)} | ({"--master": master} if master else {}) | ({"--until": until} if until else {})
    words = [word for pair in (*(("--config", str(member.path)) for member in members), *given.items()) for word in pair]
    with driving(words, environment) as group:
        endings = until_all_ended(group, members)
    return finish(summary([*endings, *refused]))


@contextlib.contextmanager
def driving(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[GroupSupervisor]:
    """Starts the driver of a group; it ends with this context."""
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "sluice_consumer.group.driver_program", *arguments]
    with child_process.starting(command, {UP: writing}) as child:
        os.close(writing)
        child_process.permit(child, environment)
        yield GroupSupervisor(DriverPipe(child), reading)


def until_all_ended(group: GroupSupervisor, members: Sequence[Member]) -> list[Ending]:
    """Runs the consumers of files until each has ended, or the driver has: how."""
    stop, endings = threading.Event(), list[Ending]()
    set_on_term(stop, lambda: logs.say("SIGTERM: all consumers drain"))
    signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    for member in members:
        group.begin(ConsumerLease(member, group.link, stop))
    while group.leases and not group.link.gone:
        group.wait(LOOK_SECONDS)
        endings += [member.ending for member in group.ended() if member.ending is not None]
    how = group.close()
    return endings if how is None else [how]


def checked(options: GroupOptions) -> tuple[list[Member], list[Ending], dict[str, str]]:
    """The consumers that may start, how the others ended, and what the checks found for the driver's environment.

    Raises:
        Refused: none may start.
    """
    imported = set[str]()

    def check(path: Path) -> tuple[Member, dict[str, str]] | SluiceError:
        try:
            config, environment = checks.before_start(path, os.environ, options.until, options.check_seconds, imported)
        except SluiceError as error:
            return error
        return shared_spark.member(path, config), environment

    with ThreadPoolExecutor(CHECKED_AT_ONCE) as pool:
        results = list(zip(options.paths, pool.map(check, options.paths), strict=True))
    refused = [(path, passed) for path, passed in results if isinstance(passed, SluiceError)]
    for path, error in refused:
        logs.warn(f"{path}: {type(error).__name__}: {error}. This consumer does not start; the others do")
    passed = [result for _, result in results if not isinstance(result, SluiceError)]
    if not passed:
        raise Refused(f"no consumer can start; the first one, {options.paths[0]}: {refused[0][1]}")
    environment: Mapping[str, str] = {name: value for _, more in passed for name, value in more.items()}
    return [result for result, _ in passed], [ending_of(error) for _, error in refused], dict(environment)


def summary(endings: Sequence[Ending]) -> Ending:
    """How the program ends; what each consumer ended with is in the log."""
    code = exit_code(list(endings))
    first = next((ending for ending in endings if ending.code), None)
    return Ending(code, first.reason if first else "", first.message if first else "")


class GroupSupervisor:
    """The supervisor of a driver that is being started: a thread for each consumer, which come and go.

    Attributes:
        leases: by the key of each member, those that run and those that have ended.
    """

    def __init__(self, link: DriverPipe, reading: int) -> None:
        """`reading`: the pipe from the driver."""
        self.link, self._reading = link, reading
        self.leases: dict[str, ConsumerLease] = {}
        self._threads: dict[str, threading.Thread] = {}
        threading.Thread(target=self._listen, name="driver", daemon=True).start()

    def begin(self, lease: ConsumerLease) -> None:
        """Runs a consumer, until it has ended."""
        key = lease.member.key
        self.leases[key] = lease
        self._threads[key] = threading.Thread(target=lease.run, name=key, daemon=True)
        self._threads[key].start()

    def wait(self, seconds: float) -> None:
        """So long, or until all consumers have ended."""
        if not self._threads:
            time.sleep(seconds)
        for thread in list(self._threads.values()):
            thread.join(seconds / len(self._threads))

    def ended(self) -> list[ConsumerLease]:
        """Consumers that have ended since the last call. They are forgotten, unless the driver has ended: then it is asked what they did."""
        over = [key for key, thread in self._threads.items() if not thread.is_alive()]
        if self.link.gone:
            return []
        for key in over:
            del self._threads[key]
        return [self.leases.pop(key) for key in over]

    def drain(self) -> None:
        """All consumers, side by side. From any thread."""
        for lease in list(self.leases.values()):
            lease.stop.set()

    def close(self) -> Ending | None:
        """Ends the driver, which has nothing left to do; how it ended, if it had before."""
        if not self.link.gone:
            self.link.send(Leave())
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.link.child.wait(STOP_SECONDS)
            end_group(self.link.child)
            return None
        end_group(self.link.child)
        return self.link.ending or self._died()

    def _listen(self) -> None:
        with os.fdopen(self._reading, "rb") as pipe:
            for text in pipe:
                try:
                    message = parsed(text)
                except (ValueError, KeyError, TypeError):
                    logs.log.warning("a line of the driver was not understood: %r", text[:200])
                    continue
                if isinstance(message, DriverReads):
                    self.link.reads = True
                elif isinstance(message, (Doing, Over)) and (lease := self.leases.get(message.name)) is not None:
                    lease.hear(message)

    def _died(self) -> Ending:
        child = self.link.child
        if child.returncode and child.returncode > 0 and child.gave_its_word():
            return Ending(child.returncode, "", "")  # it has said why itself
        how = f"was killed by signal {-child.returncode}" if child.returncode < 0 else f"ended with exit status {child.returncode}"
        busy = [(lease.member.name, lease.doing.batch) for lease in self.leases.values() if lease.doing and lease.doing.phase == PROCESS]
        named = ", ".join(f"{name} ({f'batch {batch}' if batch else 'prepare'})" for name, batch in busy) or "no consumer"
        words = f"the driver of the group {how}; `process` or `prepare` was running for {named}. All leases run out, and open batches come again"
        return Ending(1, "DriverExited", words, working=tuple(name for name, _ in busy))
