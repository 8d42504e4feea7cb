"""When a batch is warned about, and when it ends its driver (docs/runbooks.md, "A batch that does not end")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from sluice_consumer.process.batch_watch import GRACE_SECONDS, BatchLimits, BatchVerdict, BatchWatch, WatchPorts

LIMITS = BatchLimits(300, 1200)
TABLE: list[tuple[str, float, float, BatchVerdict]] = [
    ("a batch within its time", 299, 299, BatchVerdict.WAIT),
    ("one that stood still when its time was over", 300, 10, BatchVerdict.END),
    ("one that still moves", 300, 9, BatchVerdict.WARN),
    ("one that still moves after the second limit", 1200, 0, BatchVerdict.END),
]


@pytest.mark.parametrize(("elapsed", "moved", "verdict"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_verdict(elapsed: float, moved: float, verdict: BatchVerdict) -> None:
    """What a batch deserves."""
    assert LIMITS.verdict(elapsed, moved) == verdict


@dataclass
class World:
    """A batch, its watch, and what came of it."""

    at: float = 0.0
    moves: Iterator[int] = field(default_factory=lambda: iter([]))
    said: list[str] = field(default_factory=list)
    inside: Any = None
    called: float = 0.0

    def watch(self, limits: BatchLimits = LIMITS) -> BatchWatch:
        """The watch of this batch."""
        return BatchWatch(
            cast("Any", self),
            limits,
            WatchPorts(
                called=lambda: self.at >= self.called,
                progress=lambda: (next(self.moves, 0),),
                warn=lambda _plan, seconds: self.said.append(f"warned after {seconds:g}"),
                end=lambda _plan, seconds: self.said.append(f"ended after {seconds:g}"),
                clock=lambda: self.at,
                arm=lambda seconds: self.said.append(f"armed for {seconds:g}"),
                disarm=lambda: self.said.append("disarmed"),
            ),
        )

    def looks_at(self, *moments: float) -> None:
        """Runs a batch that is looked at so often."""
        watch = self.watch()

        def inside() -> None:
            for self.at in moments:
                watch.look()

        self.inside = inside
        watch.run(cast("Any", object()))

    def run(self, _plan: object) -> None:
        """See `Engine`."""
        self.inside()


def test_a_batch_that_moves_is_warned_about_once_and_ended_in_the_end() -> None:
    """Each look finds another number, until the second limit."""
    world = World(moves=iter(range(1, 99)))
    world.looks_at(100, 292, 299, 301, 310, 1199, 1200)
    assert world.said == [f"armed for {1200 + GRACE_SECONDS:g}", "warned after 301", "ended after 1200", "disarmed"]


def test_a_batch_that_stops_moving_is_ended_soon() -> None:
    """It moved until 297 s."""
    world = World(moves=iter([1, 2, 3, 3, 3, 3]))
    world.looks_at(291, 293, 297, 300, 306, 307)
    assert world.said[1:-1] == ["warned after 300", "ended after 307"]


def test_a_batch_that_spark_plans_is_not_ended_before_the_second_limit() -> None:
    """A cold Spark takes its time; once `process` was called, what stands still is ended."""
    world = World(called=400.0)
    world.looks_at(300, 350, 399, 400, 408, 409)
    assert world.said[1:-1] == ["warned after 300", "ended after 409"]


def test_nobody_is_watched_between_batches() -> None:
    """Isolation may wait for long there."""
    world = World()
    watch = world.watch()
    world.inside = lambda: None
    watch.run(cast("Any", object()))
    world.at = 99_999
    watch.look()
    assert world.said == [f"armed for {1200 + GRACE_SECONDS:g}", "disarmed"]


def test_a_batch_that_fails_is_not_watched_any_more() -> None:
    """The timer is taken back."""
    world = World()

    def fails() -> None:
        raise RuntimeError

    world.inside = fails
    with pytest.raises(RuntimeError):
        world.watch().run(cast("Any", object()))
    assert world.said[-1] == "disarmed"
