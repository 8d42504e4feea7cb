"""A driver hears from its supervisor, and ends when it has not heard for too long. Real processes, pipes and signals."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from sluice_consumer.process.lease_handoff import Guard, LeaseHandoff, standard_input

LEASE = 6.0


@pytest.fixture
def pipe() -> Iterator[tuple[FileIO, FileIO]]:
    reading, writing = os.pipe()
    with FileIO(reading) as driver, FileIO(writing, "w") as supervisor:
        yield driver, supervisor


@pytest.mark.parametrize("said", [b"", b'{"generation": 1}'], ids=["none", "cut"])
def test_without_orders_no_epoch_begins(pipe: tuple[FileIO, FileIO], said: bytes) -> None:
    driver, supervisor = pipe
    supervisor.write(said)
    supervisor.close()
    with pytest.raises(SystemExit):
        LeaseHandoff.read(driver)


def test_programs_of_the_users_function_find_standard_input_empty(pipe: tuple[FileIO, FileIO]) -> None:
    """One that reads it would take heartbeats away, and the driver would end."""
    driver, supervisor = pipe
    supervisor.write(b"1.0\n")
    kept = os.dup(0)
    try:
        os.dup2(driver.fileno(), 0)
        with standard_input() as moved:
            assert subprocess.run(["cat"], capture_output=True, check=True).stdout == b""
            assert moved.readline() == b"1.0\n"
            assert not os.get_inheritable(moved.fileno())
    finally:
        os.dup2(kept, 0)
        os.close(kept)


class Watched:
    def __init__(self, source: FileIO, now: float, sent: float = 0.0) -> None:
        self.ended: list[float] = []
        self.guard = Guard(source, LEASE, sent, lambda: self.ended.append(now), clock=lambda: now)


def test_a_beat_that_arrived_counts_although_it_is_read_late(pipe: tuple[FileIO, FileIO]) -> None:
    """This process was paused, or native code held the interpreter's lock; the lease was kept meanwhile."""
    driver, supervisor = pipe
    for sent in (2.0, 4.0, 96.5):
        supervisor.write(b"%r\n" % sent)
    guard = Watched(driver, now=100.0).guard
    assert [guard._hears() for _ in range(3)] == [True, True, True]
    assert guard.sent == 96.5


@pytest.mark.parametrize(("now", "over"), [(3.99, False), (4.0, True)])
def test_a_driver_ends_two_thirds_of_the_lease_after_the_send_of_its_last_accepted_beat(pipe: tuple[FileIO, FileIO], now: float, over: bool) -> None:  # noqa: FBT001
    driver, supervisor = pipe
    watched = Watched(driver, now)
    thread = threading.Thread(target=watched.guard.run)
    thread.start()
    if not over:
        supervisor.close()  # it waits for 10 ms more, or for this
    thread.join(60)
    assert watched.ended == [now]


@pytest.mark.parametrize("said", [b"", b"what?\n"], ids=["the supervisor is gone", "nonsense"])
def test_a_driver_ends_when_it_cannot_watch_its_lease(pipe: tuple[FileIO, FileIO], said: bytes) -> None:
    driver, supervisor = pipe
    supervisor.write(said)
    supervisor.close()
    watched = Watched(driver, now=0.0)
    watched.guard.run()
    assert watched.ended


# -- real processes ----------------------------------------------------------------------------------------------------------------

DRIVER = """
import os
import signal, subprocess
from sluice_consumer.process.lease_handoff import Guard, LeaseHandoff, standard_input
pipe = standard_input()
orders = LeaseHandoff.read(pipe)
jvm = subprocess.Popen(["sleep", "60"])
Guard(pipe, {lease}, orders.sent).start()
print(os.getpid(), jvm.pid, flush=True)
signal.alarm(60)
signal.pause()
"""
SUPERVISOR = """
import os, sys, time
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, take_over
from sluice_lab.fakes.table import MemoryTable
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.process import child_process
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.process.supervisor import Supervisor
store = CheckpointStore(MemoryTable())
store.create_consumer(ConsumerRow("id", "arn", 1))
config = Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig("m:f"), lease_duration_seconds={lease})
with child_process.starting([sys.executable, "-c", sys.argv[1]]) as driver:
    taken = take_over(store, LeaseRequest(config.lease_millis, "me", ""), Watcher())
    child_process.order(driver, taken, 0)
    ending = Supervisor(config, store, store).watch(driver, taken)
print(ending.code, ending.reason, store.consumer().released, flush=True)
"""


class Tree:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process, self.said = process, process.stdout
        self.below = [os.pidfd_open(int(pid)) for pid in self.said.readline().split()]

    def wait_below(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        return all(select.select([pid], [], [], max(0.0, until - time.monotonic()))[0] for pid in self.below)


@pytest.fixture
def tree() -> Iterator[Tree]:
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": str(root / "consumer")}
    command = [sys.executable, "-c", SUPERVISOR.replace("{lease}", str(LEASE)), DRIVER.replace("{lease}", str(LEASE))]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        made = Tree(process)
        try:
            yield made
        finally:
            process.kill()
            for pid in made.below:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pid, signal.SIGKILL)
                os.close(pid)


def test_a_driver_lives_for_as_long_as_its_supervisor_beats(tree: Tree) -> None:
    assert not tree.wait_below(LEASE)


def test_a_driver_and_its_jvm_end_within_the_lease_of_a_supervisor_that_is_stopped(tree: Tree) -> None:
    """A debugger or a signal stops the supervisor alone, and the driver would work on beside the next epoch."""
    tree.process.send_signal(signal.SIGSTOP)
    assert tree.wait_below(LEASE)
    tree.process.send_signal(signal.SIGCONT)
    assert tree.said.readline().split() == ["1", "LeaseLost", "False"]


def test_a_driver_and_its_jvm_end_with_their_supervisor(tree: Tree) -> None:
    """Its end of the pipe is closed then, whatever killed it."""
    tree.process.kill()
    assert tree.wait_below(LEASE)
