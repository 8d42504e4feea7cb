from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field

import pytest

from sluice_consumer.driver_report import DriverReport
from sluice_consumer.spark.executors import Draining, ExecutorTarget, described

DRAIN = 60.0


@dataclass
class Spark:
    running: list[str] = field(default_factory=list)
    total: int = 0
    said: list[object] = field(default_factory=list)

    def live(self) -> list[str]:
        return list(self.running)

    def request(self, total: int) -> None:
        self.total = total
        self.said.append(total)

    def decommission(self, executor: str) -> None:
        self.said.append(f"-{executor}")

    def kill(self, executor: str) -> None:
        self.said.append(f"kill {executor}")


class Bench:
    def __init__(self, running: str, total: int) -> None:
        self.now = 0.0
        self.spark = Spark(running.split(), total)
        self.target = ExecutorTarget(self.spark, total, DRAIN, lambda: self.now)

    def apply(self, target: int) -> list[object]:
        self.spark.said.clear()
        self.target.apply(target)
        return list(self.spark.said)


@pytest.mark.parametrize(
    ("running", "total", "target", "said"),
    [
        ("1 2", 2, 2, []),
        ("1 2", 2, 4, [4]),
        ("", 0, 1, [1]),
        ("1 2 3", 3, 1, [1, "-2", "-3"]),
        ("9 10 11", 3, 2, [2, "-11"]),
        ("1 2", 2, 0, [0, "-1", "-2"]),
        ("1", 4, 2, [2]),
        ("1 2", 4, 1, [1, "-2"]),
        ("", 4, 0, [0]),
    ],
    ids=[
        "nothing to do",
        "more are asked for",
        "the first one",
        "the surplus is decommissioned, youngest first",
        "ids are numbers",
        "all of them",
        "who has not come need not come",
        "both at once",
        "none had come",
    ],
)
def test_the_executors_are_brought_to_the_target(running: str, total: int, target: int, said: list[object]) -> None:
    """In place: lowering lets running tasks end, and Spark's total is the target before the first one leaves."""
    bench = Bench(running, total)
    assert bench.apply(target) == said
    assert bench.spark.total == target
    assert bench.target.total == target


def test_late_executors_beyond_the_total_do_not_push_the_total_below_the_target() -> None:
    bench = Bench("1 2 3", 2)
    bench.apply(1)
    assert bench.spark.total == 1


def test_further_changes_wait_while_executors_drain_and_the_last_one_wins() -> None:
    bench = Bench("1 2 3", 3)
    bench.apply(1)
    assert [bench.apply(target) for target in (2, 5, 4)] == [[], [], []]
    bench.spark.running = ["1"]
    assert bench.apply(4) == [4]


def test_who_does_not_finish_within_the_drain_timeout_is_killed() -> None:
    bench = Bench("1 2", 2)
    bench.apply(1)
    bench.now = DRAIN - 1
    assert bench.apply(1) == []
    bench.now = DRAIN
    assert bench.apply(1) == ["kill 2"]
    bench.spark.running = ["1"]
    assert bench.apply(1) == []
    assert bench.target.draining == {}


def test_the_live_executors_are_counted_in_every_step() -> None:
    bench = Bench("1 2", 3)
    bench.apply(3)
    assert bench.target.live == 2


def test_a_draining_executor_is_reported_by_its_pod_and_wall_clock() -> None:
    wall = datetime.datetime(2026, 1, 1, 12, 0, 30, tzinfo=datetime.UTC)
    drain = described(Draining("7", since=100.0, deadline=160.0), "demo", clock=130.0, wall=wall)
    assert json.loads(DriverReport(draining=(drain,)).text(1))["draining"] == [
        {"pod": "demo-exec-7", "since": "2026-01-01T12:00:00+00:00", "deadline": "2026-01-01T12:01:00+00:00"}
    ]
