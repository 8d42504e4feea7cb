"""A run in the driver of a group: what it reports of its end. Without Spark."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from supervising import CONFIG

from sluice_consumer.exits.ending import Ending
from sluice_consumer.group.consumer_run import ConsumerRun, RunPorts
from sluice_consumer.group.messages import Begin, Over, line, shortened
from sluice_consumer.group.turns import ROUND
from sluice_consumer.watchdog.armed_timer import PROCESS, ArmedTimer

BEGIN = Begin("orders", 1, "t", "released", 0, 0.0)
DRAINED = Ending(0, "Drained", "")


def spark(*, stopped: bool) -> Any:
    scala = SimpleNamespace(isStopped=lambda: stopped)
    return SimpleNamespace(sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scala)))


class Work:
    def __init__(self) -> None:
        self.over = threading.Event()

    def cancel(self) -> None:
        """See `TaggedWork`."""

    def is_over(self) -> bool:
        return self.over.wait(0.05)


class Run(ConsumerRun):
    def __init__(self, ending: Ending, *, stopped: bool = False) -> None:
        self.told, self.was_gone, self.done, self.left = ending, list[bool](), threading.Event(), threading.Event()
        ports = RunPorts(spark(stopped=stopped), 0.25, lambda _armed: None, cast("Callable[[str, str], None]", pytest.fail), gone=self._gone)
        super().__init__(replace(CONFIG, name="orders"), BEGIN, ports)
        self.work = Work()
        self._work = cast("Any", self.work)

    def _gone(self) -> None:
        self.was_gone.append(True)

    def _ran(self) -> Ending:
        return self.told

    def _run(self) -> None:
        super()._run()
        self.left.set()

    def _settle(self) -> None:
        super()._settle()
        self.done.set()

    def ended(self) -> Over:
        self.work.over.set()
        assert self.done.wait(30)
        assert self.result is not None
        return self.result


@pytest.mark.parametrize(("ending", "reported"), [(DRAINED, (1, "LeaseLost")), (Ending(65, "Refused", ""), (65, "Refused"))])
def test_a_run_that_was_ended_for_its_lease_does_not_report_a_drain(ending: Ending, reported: tuple[int, str]) -> None:
    """It was told to drain, so that it ends. Its supervisor would take that for the end of the consumer, and never start it again."""
    run = Run(ending)
    run.start()
    assert run.left.wait(30)
    run.end()
    over = run.ended()
    assert (over.code, over.reason) == reported


@pytest.mark.parametrize(
    ("ending", "stopped", "gone"), [(Ending(1, "x", ""), True, True), (Ending(1, "x", ""), False, False), (DRAINED, True, False)]
)
def test_a_run_that_fails_in_a_spark_that_is_no_more_ends_the_driver(ending: Ending, stopped: bool, gone: bool) -> None:  # noqa: FBT001
    """It would be begun again for ever, and fail each time; so would all others."""
    run = Run(ending, stopped=stopped)
    run.start()
    assert run.ended().code == ending.code
    assert bool(run.was_gone) == gone


def test_a_run_whose_spark_was_stopped_while_it_drained_is_reported_all_the_same() -> None:
    """Else it would never be over; its lease is not released."""
    run = Run(DRAINED)
    run._engine = cast("Any", SimpleNamespace(observe=None))
    run.start()
    assert (run.ended().code, run.ended().quiet) == (0, False)


@pytest.mark.parametrize("words", ["x" * 100_000, "\U0001f4a5" * 500, "\ud800\n" * 5000, "e\u0301 is well"])
def test_a_report_is_written_into_a_pipe_as_a_whole(words: str) -> None:
    """Whatever an exception says: a line that is cut is understood by nobody, and its run would never be over."""
    over = Over("n" * 200, 10**6, 1, "R" * 100, shortened(words), quiet=True)
    assert len(line(over)) < 4096
    assert words.startswith(over.message)
    assert over.message


def no_thread(*_: object) -> None:
    raise RuntimeError("can't start new thread")


def test_a_run_that_cannot_be_looked_after_by_more_threads_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would never be reported, its lease would be held for ever, and nobody would begin it again. Its jobs are waited for."""
    for function in ("threads.can_work", "overdue.aside"):
        monkeypatch.setattr(f"sluice_consumer.group.consumer_run.{function}", no_thread)
    run = Run(Ending(1, "ValueError", "of process"))
    run.start()
    assert not run.done.wait(0.3)
    over = run.ended()
    assert (over.code, over.reason, over.quiet) == (1, "ValueError", True)


def test_the_end_of_a_run_without_a_thread_for_its_jobs_does_not_end_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(DRAINED)
    monkeypatch.setattr("sluice_consumer.group.consumer_run.overdue.aside", no_thread)
    run.end()
    assert run.drain.is_set()


def test_a_watch_that_marks_a_batch_waits_for_nobody() -> None:
    """It marks it under its lock, and could end nothing meanwhile: neither this batch nor, with a drain, the next. Slots are waited for before."""
    run = Run(DRAINED)
    queue = run._ports.queue
    for turn in range(ROUND):
        queue.joined(f"{turn % 2}")
    assert queue.joined("another") is None
    marking = threading.Thread(target=run._mark, args=(ArmedTimer(1, "process", 0.0),), daemon=True)
    marking.start()
    marking.join(30)
    assert not marking.is_alive()


class Prepared:
    """An epoch, as far as a run begins it: `prepare` fails, or the loop does nothing. `during`: what the run was doing."""

    def __init__(self, doing: list[ArmedTimer | None], *, fails: bool) -> None:
        self.consumer = SimpleNamespace(row=SimpleNamespace(consumer_id="c"))
        self.doing, self.fails, self.during = doing, fails, list[ArmedTimer | None]()

    def begin(self, *, in_pod: bool) -> None:
        """See `Session`."""

    def wait_out(self) -> None:
        assert not self.doing

    def engine(self, _spark: object, *, share: float) -> Any:
        assert share
        self.during.append(self.doing[-1])
        if self.fails:
            raise ValueError("no such table")
        return SimpleNamespace(remember=lambda _memory: None)

    def loop(self, _engine: object, *, watching: object) -> None:
        assert watching


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_whose_prepare_works_is_named_if_the_driver_dies(monkeypatch: pytest.MonkeyPatch, *, fails: bool) -> None:
    """Memory and native code end all consumers in `prepare`, too. Each pod would die of it, and nobody would be put out."""
    monkeypatch.setattr("sluice_consumer.group.consumer_run.TaggedWork", lambda *_: Work())
    monkeypatch.setattr("sluice_consumer.group.consumer_run.give_settings", lambda *_: None)
    run, doing = Run(DRAINED), list[ArmedTimer | None]()
    context = SimpleNamespace(setLocalProperty=lambda *_: None)
    run._ports = replace(run._ports, spark=cast("Any", SimpleNamespace(newSession=lambda: None, sparkContext=context)), doing=doing.append)
    work, watch = Prepared(doing, fails=fails), SimpleNamespace(late=lambda: False)
    with pytest.raises(ValueError, match="no such table") if fails else contextlib.nullcontext():
        run._batches(cast("Any", work), cast("Any", watch))
    assert [(one and (one.batch, one.phase)) for one in (*work.during, *doing)] == [(0, PROCESS), (0, PROCESS), None]
