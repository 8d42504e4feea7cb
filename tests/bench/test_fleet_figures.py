"""The figures of a fleet: what is counted, and what is left out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "bench"))

import fleet_figures as figures
from fleet_cluster import Line, Usage
from fleet_figures import Window

from sluice_lab.site import bench_fleet
from sluice_lab.site.bench_fleet import ALONE, POOL


def line(batch: int, at: float, *numbers: int) -> Line:
    return Line(batch, at, "pool-1", numbers)


def test_a_wait_ends_with_the_first_write_of_a_record() -> None:
    lines = [line(1, 12.0, 1), line(2, 13.5, 2, 3), line(2, 90.0, 2, 3)]
    assert figures.waits({1: 9.0, 2: 11.0, 3: 13.0, 4: 14.0}, lines, Window(10.0, 20.0)) == [2500.0, 500.0]


def test_an_account_takes_the_last_call_of_a_batch_and_counts_what_came_again() -> None:
    """A record in two batches is there twice; one in two calls of a batch is not."""
    lines = {"a": [line(1, 1.0, 1, 2), line(1, 2.0, 1), line(2, 3.0, 2), line(3, 4.0, 2, 9)]}
    assert figures.account({"a": [1, 2, 3]}, lines) == {"put": 3, "missing": 1, "twice": 1, "unknown": 1, "again": 2}


def test_cpu_is_measured_between_the_looks_of_each_pod() -> None:
    """The kubelet looks at pods at different times. A pod that has gone does not count."""
    before = {"driver": used(1.0, 100.0), "executor": used(5.0, 101.0), "gone": used(1.0, 100.0)}
    after = {"driver": used(11.0, 120.0), "executor": used(10.0, 111.0), "new": used(9.0, 120.0)}
    assert figures.cpu(before, after, POOL) == pytest.approx(1.0)
    assert figures.cpu(before, after, ALONE) == 0


def used(cpu: float, at: float) -> Usage:
    return Usage("driver", POOL, cpu, 800.0, 700.0, at)


def test_pods_of_drivers_of_their_own_are_counted_for_as_many_consumers_as_the_pool_has() -> None:
    """Four were measured; forty would have ten times as many."""
    waits = {"median": 1.0, "p95": 2.0, "most": 3.0, "count": 4}
    one = {role: {"working": 512.0, "rss": 0.0, "most": 0.0} for role in ("driver", "executor")}
    shown = bench_fleet.rows({
        "members": 40, "alone": 4, "pods": {POOL: 3, ALONE: 8}, "memory": {POOL: one, ALONE: one}, "cpu": {POOL: 50, ALONE: 100},
        "quiet": {POOL: waits, ALONE: waits, "same": waits}, "troubled": {POOL: waits, ALONE: waits},
        "killed": {owner: {"taken": waits, "resumed": waits} for owner in (POOL, ALONE)},
        "account": {POOL: {"put": 9, "missing": 0, "twice": 0}},
    })  # fmt: skip
    assert "| pods | 3 | 80 | 0.04 |" in shown
    assert "| all pods, GiB | 1.5 | 40.0 | 0.04 |" in shown
    assert "| CPU-ms a batch, with probes of idle streams | 50 | 100 | 0.50 |" in shown
