"""When a batch is warned about, and when it ends its driver (docs/runbooks.md, "A batch that does not end")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists
from py4j.protocol import Py4JError

from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.watchdog.armed_timer import ArmedTimer
from sluice_consumer.watchdog.batch_watch import GRACE_SECONDS, STILL_SECONDS, BatchLimits, BatchVerdict, BatchWatch, WatchedBatch, WatchPorts

LIMITS = BatchLimits(300, 1200)
TABLE: list[tuple[str, float, float, BatchVerdict]] = [
    ("a batch within its time", 299, 299, BatchVerdict.WAIT),
    ("one that stood still when its time was over", 300, 10, BatchVerdict.END),
    ("one that still moves", 300, 9, BatchVerdict.WARN),
    ("one that still moves after the second limit", 1200, 0, BatchVerdict.END),
]


@pytest.mark.parametrize(("elapsed", "moved", "verdict"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_verdict(elapsed: float, moved: float, verdict: BatchVerdict) -> None:
    assert LIMITS.verdict(elapsed, moved) == verdict


FAILS, PLAN = ValueError("no such column"), BatchPlan(1, ())
ARMED = f"armed for {LIMITS.still + STILL_SECONDS + GRACE_SECONDS:g}"


@dataclass
class World:
    """A batch, its watch, and what came of it.

    Attributes:
        called: when `process` is called. drained: when the time of a drain is over.
    """

    at: float = 0.0
    moves: Iterator[int] = field(default_factory=lambda: iter([]))
    said: list[str] = field(default_factory=list)
    timer: list[str] = field(default_factory=list)
    inside: Callable[[], None] = lambda: None
    called: float = 0.0
    drained: float = math.inf
    broken: bool = False

    def watch(self, limits: BatchLimits = LIMITS) -> BatchWatch:
        return BatchWatch(
            cast("Any", self),
            limits,
            WatchPorts(
                called=lambda: self.at >= self.called,
                progress=self.progress,
                warn=lambda batch: self.said.append(f"warned after {batch.seconds:g}"),
                end=self.end,
                late=lambda: self.at >= self.drained,
                clock=lambda: self.at,
                arm=lambda seconds: self.timer.append(f"armed for {seconds:g}"),
                disarm=lambda: self.timer.append("disarmed"),
            ),
        )

    def progress(self) -> tuple[int, ...]:
        if self.broken:
            raise Py4JError("the JVM does not answer")
        return (next(self.moves, 0),)

    def end(self, batch: WatchedBatch) -> None:
        why = f" by {batch.error}" if batch.error else ""
        self.said.append(f"{batch.phase.value} ended after {batch.seconds:g}{why}{' of a drain' if batch.drained else ''}")

    def looks_at(self, *moments: float, limits: BatchLimits = LIMITS) -> None:
        watch = self.watch(limits)
        self.inside = lambda: self.look(watch, *moments)
        with watch.batch(PLAN):
            watch.run(PLAN)

    def look(self, watch: BatchWatch, *moments: float) -> None:
        for self.at in moments:
            watch.tick()

    def run(self, _plan: object) -> None:
        self.inside()


def test_a_batch_that_moves_is_warned_about_once_and_ended_in_the_end() -> None:
    world = World(moves=iter(range(1, 99)))
    world.looks_at(100, 292, 299, 301, 310, 1199, 1200)
    assert world.said == ["warned after 301", "process ended after 1200"]


@given(
    heartbeat=floats(0.1, 400),
    look=floats(0.5, 2),
    phase=floats(0, 1),
    still=integers(30, 3600),
    drift=lists(floats(0.0, 0.2), min_size=1, max_size=5),
)
def test_what_moves_at_every_heartbeat_is_never_ended_as_still(heartbeat: float, look: float, phase: float, still: int, drift: list[float]) -> None:
    limits = BatchLimits(still, 4 * still, BatchLimits.window_of(heartbeat))
    world = World()
    world.moves = iter(lambda: int(max(0.0, world.at - phase * heartbeat) / heartbeat), None)
    late = itertools.accumulate(itertools.cycle(drift), lambda at, more: at + look + more, initial=0.0)
    world.looks_at(*itertools.takewhile(lambda at: at < limits.moving, late), limits=limits)
    assert not [said for said in world.said if "ended" in said]


@given(heartbeat=floats(0.1, 60), still=integers(200, 3600), stops=floats(0, 5000))
def test_what_stops_is_ended_within_the_window(heartbeat: float, still: int, stops: float) -> None:
    limits = BatchLimits(still, 86_400, BatchLimits.window_of(heartbeat))
    world = World()
    world.moves = iter(lambda: int(min(world.at, stops)), None)
    due = max(still, stops + limits.window)
    world.looks_at(*range(int(due) + 3), limits=limits)
    assert [said for said in world.said if "ended" in said]


def test_a_batch_that_stops_moving_is_ended_soon() -> None:
    world = World(moves=iter([1, 2, 3, 3, 3, 3]))
    world.looks_at(291, 293, 297, 300, 306, 307)
    assert world.said == ["warned after 300", "process ended after 307"]


def test_a_spark_that_does_not_answer_while_it_plans_has_an_end() -> None:
    """Nobody can ask what moves. Half an hour, where the limit is less; and it is no place of `process` that is told."""
    world, seen = World(called=math.inf), list[WatchedBatch]()
    world.end = seen.append  # type: ignore[method-assign, assignment]
    world.looks_at(299, 301, 1799, 1800, limits=BatchLimits(300, 86_400))
    assert world.said == ["warned after 301"]
    assert [(batch.seconds, batch.planning) for batch in seen] == [(1800, True)]
    assert BatchLimits(3600, 86_400).planning == 3600


def test_a_process_that_was_ended_and_returned_all_the_same_is_not_committed() -> None:
    """Its batch failed: what it left out in its haste comes again."""
    world = World()
    watch = world.watch()
    watch._ports = replace(watch._ports, error=lambda: FAILS if world.said else None)
    world.inside = lambda: world.look(watch, 299, 300)
    with pytest.raises(ValueError, match="no such column"), watch.batch(PLAN):
        watch.run(PLAN)
    assert world.said == ["process ended after 300"]


def test_a_batch_that_spark_plans_is_not_ended_before_the_second_limit() -> None:
    """A cold Spark takes its time; once `process` was called, what stands still is ended."""
    world = World(called=400.0)
    world.looks_at(300, 350, 399, 400, 408, 409)
    assert world.said == ["warned after 300", "process ended after 409"]


def test_a_jvm_that_does_not_answer_does_not_end_the_watching() -> None:
    world = World(broken=True)
    world.looks_at(299, 300)
    assert world.said == ["process ended after 300"]


def test_what_follows_a_failure_has_an_end_too_and_the_failure_is_named() -> None:
    """A job of the batch hangs while another fails: the search waits for it. The phase has a time of its own."""
    world = World()
    watch = world.watch()

    def fails() -> None:
        world.at = 250.0
        raise FAILS

    world.inside = fails
    with watch.batch(PLAN):
        with pytest.raises(ValueError, match="no such column"):
            watch.run(PLAN)
        world.look(watch, 300, 549, 550)
    assert world.said == ["failed ended after 300 by no such column"]


def test_closing_and_committing_have_an_end_too() -> None:
    world = World()
    watch = world.watch()
    with watch.batch(PLAN):
        watch.run(PLAN)
        world.look(watch, 299, 300)
    assert world.said == ["closing ended after 300"]


def test_a_pause_between_two_tries_is_no_batchs_time() -> None:
    """They grow to a minute, and one may be longer than the limit."""
    world = World()
    watch = world.watch()
    with watch.batch(PLAN):
        with watch.resting():
            world.look(watch, 400)
        world.look(watch, 699)
        assert not world.said
        world.look(watch, 700)
    assert world.said == ["beginning ended after 300"]


def test_a_drain_has_an_end_in_every_phase_also_where_batches_have_none() -> None:
    """`maxSeconds: 0`, in a process that nobody kills."""
    world = World(drained=140.0)
    world.looks_at(139, 140, 141, limits=BatchLimits(math.inf, math.inf))
    assert world.said == ["process ended after 140 of a drain", "process ended after 141 of a drain"]
    assert world.timer[-1] == "disarmed"
    assert not [said for said in world.timer if said.startswith("armed")]


def test_where_a_batch_is_is_known_also_where_batches_have_no_end() -> None:
    """A driver that dies names the consumers whose `process` ran. Left out, one would have its deaths counted to others."""
    world, marks = World(), list[ArmedTimer | None]()
    watch = world.watch(BatchLimits(math.inf, math.inf))
    watch._ports = replace(watch._ports, mark=marks.append)
    with watch.batch(PLAN):
        watch.run(PLAN)
    assert [one and (one.batch, one.phase) for one in marks] == [(1, "beginning"), (1, "process"), (1, "closing"), None]
    told = [ArmedTimer.parse(str(one)) for one in marks if one]
    assert [one and one.ended(1, 1e12) for one in told] == [False] * 3
    assert world.timer == ["disarmed"]


def test_nobody_is_watched_between_batches() -> None:
    world = World()
    watch = world.watch()
    with watch.batch(PLAN):
        watch.run(PLAN)
    world.look(watch, 99_999)
    assert not world.said
    assert world.timer == [ARMED, ARMED, ARMED, "disarmed"]


def test_the_timer_outside_of_python_fires_only_when_nobody_has_looked_for_long() -> None:
    """Native code that holds Python's lock holds the watch up; each look sets the timer again."""
    world = World(moves=iter(range(1, 999)))
    world.looks_at(*range(5, 105, 5))
    assert world.timer.count(ARMED) == 3 + 10


def test_a_batch_that_fails_is_not_watched_any_more() -> None:
    world = World()

    def fails() -> None:
        raise FAILS

    world.inside = fails
    watch = world.watch()
    with pytest.raises(ValueError, match="no such column"), watch.batch(PLAN):
        watch.run(PLAN)
    world.look(watch, 99_999)
    assert (world.said, world.timer[-1]) == ([], "disarmed")
