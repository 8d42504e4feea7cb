"""What the tests of a supervisor share: its configuration, a lease that is held, virtual time, a driver that drains."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.migrate.ports import PreparedTarget
from sluice_checkpoints.protocol.lease import LeaseRequest, TakenLease, Watcher, take_over
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.process import supervisor
from sluice_consumer.process.child_process import DriverProcess, end_group
from sluice_consumer.process.supervisor import Heartbeats, Supervisor
from sluice_lab.fakes.table import MemoryTable

LEASE = 30.0
CONFIG = Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig("m:f"), lease_duration_seconds=LEASE)


@dataclass
class Stop:
    heart: Any = None
    waits: list[float] = field(default_factory=list)
    limit: int = 10

    def is_set(self) -> bool:
        return len(self.waits) >= self.limit

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.heart.time[0] += seconds


class Beating(Heartbeats):
    """A heart in virtual time; `answers` are what beats come to, the last one for ever."""

    def __init__(self, *answers: bool | Exception, keep: float = 0.0, limit: int = 10, seconds: float = 0.0) -> None:
        self.time, self.promises, self.answers, self.seconds = [0.0], list[int | None](), list(answers), seconds
        stop = Stop(self, limit=limit)
        super().__init__(self._answer, LEASE, 0.0, keep, clock=lambda: self.time[0], stop=cast("Any", stop))
        self.waits = stop.waits

    def _answer(self, promise: int | None) -> bool:
        self.promises.append(promise)
        self.time[0] += self.seconds
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


YES, NO, GONE = True, False, ServiceUnavailable("no answer")


# -- draining ----------------------------------------------------------------------------------------------------------------------


LIMIT = CONFIG.drain_timeout_seconds + supervisor.STOP_SECONDS


HANGS = "signal.SIG_IGN"
DRAINS = "lambda *_: leave(0)"


class Drain:
    """A supervisor whose clock stands at 0 when its driver, a real process, is told to stop."""

    def __init__(self, on_term: str) -> None:
        self.store, taken = leased()
        self.taken = replace(taken, sent=time.monotonic())  # beats are sent in real time
        self.now = 0.0
        self.keeper = Supervisor(CONFIG, self.store, self.store, lambda: self.now)
        code = f"""
import os, signal, time
from sluice_consumer.exits.ending import OwnWord, leave
signal.alarm(60)
OwnWord.open()
signal.signal(signal.SIGTERM, {on_term})
os.kill(os.getpid(), signal.SIGSTOP)
while True:
    time.sleep(0.01)
"""
        self.child = DriverProcess([sys.executable, "-c", code])
        os.waitpid(self.child.pid, os.WUNTRACED)  # it stops itself when it is ready
        self.child.send_signal(signal.SIGCONT)
        self.keeper._child = self.child

    def told(self) -> Drain:
        self.keeper.on_term()
        return self

    def watched(self, at: float) -> tuple[int, str, bool]:
        """Exit code and reason, and whether the lease was released, if it is watched from then on."""
        self.now = at
        try:
            ending = self.keeper.watch(self.child, self.taken)
        finally:
            if self.child.poll() is None:
                end_group(self.child)
            self.child.close()
        row = self.store.consumer()
        assert row is not None
        return ending.code, ending.reason, row.released


# -- taking ------------------------------------------------------------------------------------------------------------------------


@dataclass
class Time:
    now: float = 0.0
    slept: float = 0.0
    at: dict[float, Any] = field(default_factory=dict)

    def watcher(self) -> Watcher:
        return Watcher(clock=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds
        for moment in sorted(m for m in self.at if m <= self.now):
            self.at.pop(moment)()


def leased(lease_millis: int = 30_000) -> tuple[CheckpointStore, TakenLease]:
    store = CheckpointStore(MemoryTable())
    store.create_consumer(ConsumerRow("id", "arn", 1))
    return store, take_over(store, LeaseRequest(lease_millis, "me", ""), Time().watcher())


# -- a table that is gone ---------------------------------------------------------------------------------------------------------


class Targets:
    def __init__(self, table: MemoryTable | None) -> None:
        self.table, self.asked, self.id = table, list[str](), "arn:t@1"

    def identity(self, _name: str) -> str:
        return self.id

    def find(self, _name: str) -> MemoryTable | None:
        return self.table

    def ensure(self, name: str) -> PreparedTarget:
        self.asked.append(name)
        return PreparedTarget(MemoryTable(), ())
