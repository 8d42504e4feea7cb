"""How busy a driver is, and which shards give it work, in virtual time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.metrics.driver import DriverMetrics
from sluice_consumer.metrics.load import WINDOW_SECONDS, Load, steady


class Bench:
    def __init__(self, interval: float = 5.0) -> None:
        self.now = 1000.0
        self.load = Load(interval, lambda: self.now)

    def batch(self, seconds: float, rest: float = 0.0, *shards: str) -> None:
        self.load.begin()
        self.now += seconds
        self.load.end()
        self.load.committed([*(row(each, 1) for each in shards), row("empty", 0)], seconds)
        self.now += rest


def row(shard: str, records: int) -> ShardRow:
    return ShardRow(shard, TRIM_HORIZON, Position.after("7"), records=records)


def test_a_driver_that_rests_half_of_its_time_is_half_busy() -> None:
    bench = Bench()
    for _ in range(12):
        bench.batch(2.5, 2.5)
    assert bench.load.busy == 0.5


def test_a_batch_counts_before_it_is_committed() -> None:
    """`process` may take ten minutes; a counter of committed batches would show nothing, then ten minutes at once."""
    bench = Bench()
    bench.now += 60
    assert bench.load.busy == 0.0
    bench.load.begin()
    bench.now += 30
    assert bench.load.busy == 0.5
    bench.now += 600
    assert bench.load.busy == 1.0
    bench.load.end()
    bench.now += WINDOW_SECONDS
    assert bench.load.busy == 0.0


def test_long_intervals_are_judged_by_three_of_them() -> None:
    """Else the figure would be 1 during a batch and 0 between two."""
    bench = Bench(interval=600)
    for _ in range(4):
        bench.batch(60, 540)
        assert bench.load.busy == 0.1


def test_the_time_of_a_batch_counts_once() -> None:
    """A streaming query tells only that a batch was committed, and how long it took; the batch loop tells both."""
    told, loop = Bench(), Bench()
    for _ in range(6):
        told.now += 5
        told.load.committed([], 5.0)
        told.now += 5
        loop.batch(5, 5)
    assert (told.load.busy, loop.load.busy) == (0.5, 0.5)


def test_shards_with_records_in_the_last_minute_are_active() -> None:
    bench = Bench()
    bench.batch(1, 30, "a", "b")
    bench.batch(1, 0, "b", "c")
    assert bench.load.active_shards == 3
    bench.now += 40
    assert bench.load.active_shards == 2
    bench.now += 40
    assert bench.load.active_shards == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 200), st.floats(0, 200)), max_size=20), st.floats(0, 300))
def test_busy_is_a_part_of_a_whole_at_any_time(batches: list[tuple[float, float]], opened: float) -> None:
    bench = Bench()
    for seconds, rest in batches:
        bench.batch(seconds, rest, "a")
        assert 0 <= bench.load.busy <= 1
    bench.load.begin()
    bench.now += opened
    assert 0 <= bench.load.busy <= 1
    assert all(end > start - 1e-9 for start, end in bench.load._spans)


@pytest.mark.parametrize(
    ("before", "now", "reported"),
    [(None, 0.3, 0.3), (0.3, 0.35, 0.3), (0.3, 0.41, 0.41), (0.05, 0.0, 0.0), (0.95, 1.0, 1.0), (1.0, 1.0, 1.0)],
)
def test_a_small_change_waits_for_the_next_batch(before: float | None, now: float, reported: float) -> None:
    assert steady(before, now) == reported


def test_a_scrape_has_the_series_from_the_beginning_and_asks_the_load() -> None:
    """A panel of a driver that has just started is not empty."""
    metrics, bench = DriverMetrics(), Bench()
    assert b"sluice_busy_ratio 0.0" in generate_latest(metrics.registry)
    metrics.busy(bench.load)
    bench.batch(6, 6)
    assert b"sluice_busy_ratio 0.5" in generate_latest(metrics.registry)
