"""The driver of a group ends what has to end, and nothing else."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field, replace
from io import FileIO
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from supervising import CONFIG

from sluice_checkpoints.errors import Refused
from sluice_consumer.group.driver import STEP_SECONDS, GroupDriver, RunInDriver
from sluice_consumer.group.ends import EpochWork
from sluice_consumer.group.messages import Beat, Begin, Drain, DriverReads, Executors, Leave, Lose, Message, Over, line
from sluice_consumer.group.metrics import GroupMetrics

LEASE = 30.0


@dataclass
class Run:
    name: str = ""
    ends: int = 0
    drain: threading.Event = field(default_factory=threading.Event)
    result: Over | None = None

    def drains(self) -> None:
        self.drain.set()

    def end(self) -> None:
        self.ends += 1


class Driver(GroupDriver):
    def __init__(self) -> None:
        self.sent, self.now, self.ended, self.full = list[Message](), 0.0, 0, False
        super().__init__(lambda _begin: cast("Any", None), cast("Any", None), 0.25, self._up, end=self._end, clock=lambda: self.now)
        self.fakes = {name: Run(name) for name in "ab"}
        self.runs = {name: RunInDriver(cast("Any", run), EpochWork(1, LEASE, 0.0)) for name, run in self.fakes.items()}

    def _up(self, message: Message) -> bool:
        if not self.full:
            self.sent.append(message)
        return not self.full

    def _end(self) -> None:
        self.ended += 1

    def at(self, now: float) -> Driver:
        self.now = now
        self.step()
        return self


def ends(driver: Driver) -> tuple[int, int, int]:
    return driver.fakes["a"].ends, driver.fakes["b"].ends, driver.ended


def test_a_lost_lease_ends_its_run_step_by_step_and_no_other() -> None:
    driver = Driver()
    driver.hear(Beat("b", 1, 14.0))
    assert ends(driver.at(14.9)) == (0, 0, 0)
    assert ends(driver.at(15.1)) == ends(driver.at(15.1 + STEP_SECONDS / 2)) == (1, 0, 0)
    assert ends(driver.at(15.1 + STEP_SECONDS)) == (2, 0, 0)


def test_a_lease_that_is_anothers_ends_its_run_at_once() -> None:
    driver = Driver()
    driver.hear(Lose("b", 1))
    driver.hear(Lose("a", 7))  # of an epoch that this driver does not run
    assert ends(driver.at(0.1)) == (0, 1, 0)


def test_a_run_that_does_not_end_in_time_ends_the_driver_and_one_that_has_ended_does_not() -> None:
    """Two thirds of the lease."""
    driver = Driver()
    driver.hear(Beat("b", 1, 14.0))
    driver.at(15.1)
    driver.fakes["a"].result = Over("a", 1, 1, "LeaseLost", "", quiet=False)
    assert ends(driver.at(20.1)) == (1, 0, 0)
    assert driver.sent == [driver.fakes["a"].result]
    driver.hear(Beat("a", 1, 20.0))  # of a run that is over
    assert ends(driver.at(34.1))[2] == 1


def test_the_end_of_a_run_is_reported_once_the_supervisor_reads_again() -> None:
    """It may be paused, and its pipe full: the driver does not wait for it, and goes on watching leases."""
    driver = Driver()
    driver.full = True
    driver.fakes["a"].result = over = Over("a", 1, 1, "ValueError", "", quiet=True)
    assert driver.at(1.0).sent == []
    assert ends(driver.at(20.1)) == (0, 0, 1)  # b has had no heartbeat; a is over
    driver.full = False
    assert driver.at(20.2).sent == [over]
    assert driver.at(20.3).sent == [over]


def test_a_drain_reaches_its_run_and_no_other() -> None:
    driver = Driver()
    driver.hear(Drain("a", 1))
    driver.hear(Drain("b", 7))
    assert [run.drain.is_set() for run in driver.fakes.values()] == [True, False]


def test_the_wanted_number_of_executors_is_heard() -> None:
    driver = Driver()
    driver.hear(Executors(3))
    driver.hear(Executors(2))
    assert driver.wanted == 2


@pytest.mark.parametrize(("last", "ended"), [(line(Leave()), 0), (b"", 1), (b'{"kind": "Be', 1)])
def test_a_driver_whose_supervisor_is_gone_ends(last: bytes, ended: int) -> None:
    driver = Driver()
    reading, writing = os.pipe()
    os.write(writing, line(Beat("a", 1, 9.0)) + last)
    os.close(writing)
    with FileIO(reading) as pipe:
        driver.follow(pipe)
    assert (driver.ended, driver.runs["a"].work.sent) == (ended, 9.0)


@pytest.mark.parametrize("full", [0, 2])
def test_a_driver_says_once_that_it_reads(full: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then no lease is taken for it. Where the pipe to the supervisor is full, it says so later."""
    driver, looks = Driver(), list[bool]()
    reading, writing = os.pipe()

    def look() -> None:
        looks.append(driver.full)
        driver.full = len(looks) < full
        os.write(writing, line(Leave() if len(looks) == 4 else Executors(1)))

    driver.full = bool(full)
    monkeypatch.setattr(driver, "step", look)
    with FileIO(reading) as pipe:
        driver.follow(pipe)
    os.close(writing)
    assert driver.sent == [DriverReads()]


def test_each_series_carries_the_consumer() -> None:
    metrics, page = GroupMetrics(), CollectorRegistry()
    page.register(metrics)
    for name, value in (("a", 1), ("b", 2), ("a", 3)):
        registry = CollectorRegistry()
        Gauge("sluice_shards", "Shards", ("state",), registry=registry).labels("open").set(value)
        metrics.keep(name, cast("Any", type("Session", (), {"registry": registry})))
    text = generate_latest(page).decode()
    assert text.count("# TYPE sluice_shards gauge") == 1
    assert 'sluice_shards{consumer="a",state="open"} 3.0' in text
    assert 'sluice_shards{consumer="b",state="open"} 2.0' in text


@pytest.mark.parametrize(("leaves", "left"), [(True, {"b"}), (False, {"a", "b"})])
def test_a_consumer_that_left_a_pool_takes_its_metrics_with_it(leaves: bool, left: set[str]) -> None:  # noqa: FBT001 - a table
    """It may run elsewhere: two series of one consumer, of which one never changes, would be an alarm. In a group it comes again, or has ended."""
    driver = Driver()
    driver.leaves = leaves
    for name, run in driver.fakes.items():
        registry = CollectorRegistry()
        Gauge("lag", "of a consumer", registry=registry).set(7)
        driver.metrics.keep(name, cast("Any", SimpleNamespace(registry=registry)))
        run.result = Over(name, 1, 0, "Drained", "", quiet=True) if name == "a" else None
    driver.at(0.1)
    assert {sample.labels["consumer"] for family in driver.metrics.collect() for sample in family.samples} == left


@pytest.mark.parametrize(("error", "code"), [(OSError(24, "Too many open files"), 1), (Refused("batch: must be an object"), 65)])
def test_a_consumer_that_cannot_begin_ends_alone(error: Exception, code: int) -> None:
    driver = Driver()

    def unreadable(_begin: Begin) -> Any:
        raise error

    driver.config_of, driver.full = unreadable, True
    driver.hear(Begin("c", 3, "t", "released", 0, 0.0))
    assert driver.at(0.1).sent == []
    driver.hear(Drain("c", 3))
    driver.full = False
    over = Over("c", 3, code, type(error).__name__, str(error), quiet=True)
    assert driver.at(0.2).sent == driver.at(0.3).sent == [over]
    assert (ends(driver), set(driver.runs)) == ((0, 0, 0), {"a", "b"})


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_consumer_without_a_thread_ends_alone(allowed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of processes is reached, with the first of its threads or the second: nothing of it works, and it says so."""
    driver, start, begun = Driver(), threading.Thread.start, list[threading.Thread]()

    def limited(thread: threading.Thread) -> None:
        if len(begun) == allowed:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    driver.config_of = lambda _begin: replace(CONFIG, name="orders")
    monkeypatch.setattr(threading.Thread, "start", limited)
    driver.hear(Begin("c", 3, "t", "released", 0, 0.0))
    for thread in begun:
        thread.join(30)
    assert driver.at(0.1).sent == [Over("c", 3, 1, "RuntimeError", "can't start new thread", quiet=True)]
    assert (ends(driver), set(driver.runs)) == ((0, 0, 0), {"a", "b"})
