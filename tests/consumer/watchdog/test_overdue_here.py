"""A batch that does not end in somebody else's process: the steps, and when each is taken (docs/plain-pyspark.md)."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.poison.isolator import BatchInterrupt, BatchOverdue
from sluice_consumer.spark.engine import SparkEngine
from sluice_consumer.watchdog import overdue_here
from sluice_consumer.watchdog.batch_watch import BatchPhase, WatchedBatch
from sluice_consumer.watchdog.overdue_here import RunControls, RunWatch, raise_in

HANGS = WatchedBatch(BatchPlan(7, ()), BatchPhase.PROCESS, 3600.0)
DRAIN = 140.0


@dataclass
class Run:
    time: float = 0.0
    done: list[str] = field(default_factory=list)
    draining: bool = False

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> RunWatch:
        monkeypatch.setattr(overdue_here, "raise_in", lambda _thread, error: self.done.append(error.__name__))
        told = {name: (lambda name=name: self.done.append(name)) for name in ("cancel", "stop", "give up")}
        controls = RunControls(told["cancel"], told["stop"], told["give up"], lambda: self.draining, DRAIN)
        return RunWatch(controls, lambda: self.time)


def test_each_step_follows_when_the_one_before_has_not_helped(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    watch = run.watch(monkeypatch)
    notes: list[Any] = []
    watch._isolator = cast("Any", SimpleNamespace(overdue=lambda *note: notes.append(note)))
    for run.time in range(20):
        watch.end(HANGS)
    steps = [step for step in run.done if step != "cancel"]
    assert steps == ["stop", "BatchInterrupt", "give up"]
    assert run.done.count("cancel") == 20
    assert run.done.index("cancel") < run.done.index("BatchInterrupt")
    assert str(watch.error).startswith("batch 7 of 0 shards has not ended after 3600 s (batch.maxSeconds): process is at")
    ((number, error, told),) = notes
    assert (number, error.partition(" at ")[0], "batch 7" in told) == (7, "BatchOverdue", True)


def test_a_drain_has_its_time_and_20_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted from when it was told. Its end is no failure of `process`: nothing is noted."""
    run = Run(time=500.0)
    watch = run.watch(monkeypatch)
    assert not watch.late()
    run.draining = True
    assert not watch.late()
    run.time += DRAIN - 1
    assert not watch.late()
    run.time += 1
    assert watch.late()
    watch._isolator = cast("Any", None)
    watch.end(WatchedBatch(BatchPlan(7, ()), BatchPhase.PROCESS, 200.0, drained=True))
    assert "the time of a drain is over" in str(watch.error)


def test_a_loop_in_python_is_ended_from_outside() -> None:
    began, ended = threading.Event(), list[BaseException]()

    def process() -> None:
        try:
            began.set()
            while True:
                time.monotonic()
        except BatchInterrupt as error:
            ended.append(error)

    thread = threading.Thread(target=process, daemon=True)
    thread.start()
    began.wait()
    raise_in(thread.ident or 0, BatchInterrupt)
    thread.join(60)
    assert [type(error) for error in ended] == [BatchInterrupt]


def ended_by_the_watch(process: Callable[[], None]) -> list[BaseException | None]:
    """What a real engine's call raised, where a watch ends the batch once every 20 ms from its beginning; None: it returned."""
    engine = object.__new__(SparkEngine)
    engine._process = lambda _batch, _info: process()
    came: list[BaseException | None] = []

    def run() -> None:
        try:
            engine._call(cast("Any", None), cast("Any", SimpleNamespace(consumer="orders", batch=7)))
            came.append(None)
        except BaseException as error:  # noqa: BLE001 - what comes out is asked
            came.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    watch = RunWatch(RunControls(lambda: None, lambda: None, lambda: None, lambda: False, DRAIN), itertools.count(0, 4).__next__)
    watch._thread = thread.ident or 0
    while thread.is_alive():
        watch.end(HANGS)
        thread.join(0.02)
    return came


def test_a_loop_that_tries_again_after_any_exception_is_ended() -> None:
    """The commonest shape of a function that waits for its sink."""

    def refused() -> None:
        raise OSError

    def tries_again() -> None:
        while True:
            try:
                time.sleep(0.001)
                refused()
            except Exception:  # noqa: BLE001, S112 - the shape that is meant
                continue

    (error,) = ended_by_the_watch(tries_again)
    assert isinstance(error, BatchOverdue)


def test_a_loop_that_swallows_everything_is_interrupted_again_and_its_batch_is_not_committed() -> None:
    """It returns after the third time; then the watch refuses (`test_batch_watch`)."""
    swallowed: list[BaseException] = []

    def swallows() -> None:
        while len(swallowed) < 3:
            try:
                time.sleep(0.001)
            except BaseException as error:  # noqa: BLE001 - the shape that is meant
                swallowed.append(error)

    (error,) = ended_by_the_watch(swallows)
    assert error is None or isinstance(error, BatchOverdue)  # the last one may come as it returns
    assert {type(one) for one in swallowed} == {BatchInterrupt}
