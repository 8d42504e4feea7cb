"""`spec.autoscale` on a real cluster: a load of one executor, of four, and of one. The number follows it up and down, with Spark's own executors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from cluster_bench import Bench
from rules_world import World, world

from sluice_lab.scenario.producer import LoadGenerator

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

NAME = "elastic"
MOST, TARGET, COOL_DOWN, INTERVAL = 4, 15, 60, 5  # executors; the others in seconds
WORK = 0.03  # seconds that a record takes: an executor does 33 a second
CAP = 200  # records of a shard in a batch: 24 s of one executor, 6 s of four
COUNT, PUT = 48, 160  # Kinesis records in a put, and the records in these: as many on each shard
ONE, FOUR = 30.0, 2.1  # seconds from put to put: a sixth of what one executor does, and more than two can do, however fast the machine is
FAR = PUT / FOUR * TARGET  # records that were put and are not kept: as many as come in the target
UP = [(1, 2), (2, 4)]
STEP = re.compile(r"executors (\d+) → (\d+): (\w+)")


@dataclass(frozen=True)
class Elastic:
    world: World

    def runs(self, executors: int) -> bool:
        subject = self.world.subject(NAME)
        return bool((subject.status.get("autoscale") or {}).get("replicas") == executors and subject.settled(executors))

    def lag(self) -> int:
        """Records that were put and are not kept, whatever its driver reports."""
        return len(self.world.missing(NAME))

    def changes(self) -> list[tuple[int, int]]:
        events = [each for each in self.world.bench.get("events") if each["involvedObject"]["name"] == NAME and each["reason"] == "Autoscaled"]
        events.sort(key=lambda each: each["eventTime"] or each["firstTimestamp"])
        found = [STEP.match(each["message"] if "message" in each else each["note"]) for each in events]
        return [(int(each[1]), int(each[2])) for each in found if each]


@contextmanager
def load(found: World, seconds: float) -> Iterator[None]:
    generator = LoadGenerator(found.producer, COUNT, seconds)
    generator.start()
    try:
        yield
    finally:
        generator.stop()


@pytest.fixture(scope="module")
def elastic(bench: Bench) -> Iterator[Elastic]:
    with world(bench, "autoscale") as found:
        bounds = {"min": 1, "max": MOST, "targetLagSeconds": TARGET, "coolDownSeconds": COOL_DOWN}
        body = found.manifest(NAME, args={"work": WORK}, autoscale=bounds, batch={"intervalSeconds": INTERVAL, "maxRecordsPerShard": CAP})
        body["spec"]["pipeline"]["entrypoint"] = "rules_pipeline:work"
        bench.apply(body)
        bench.until("one executor", lambda: Elastic(found).runs(1))
        yield Elastic(found)


def test_a_load_of_four_executors_gets_four_and_the_lag_is_back(elastic: Elastic) -> None:
    bench = elastic.world.bench
    with load(elastic.world, FOUR):
        bench.until("the lag over the target", lambda: elastic.lag() > FAR)
        bench.until("two executors", elastic.changes)
        bench.until("four executors", lambda: elastic.runs(4))
        bench.until("the lag under the target", lambda: elastic.lag() < FAR)
    assert elastic.changes() == UP


def test_a_load_of_one_executor_gets_one_again(elastic: Elastic) -> None:
    with load(elastic.world, ONE):
        for executors in (3, 2, 1):
            elastic.world.bench.until(f"{executors} executors", lambda executors=executors: elastic.runs(executors))
    assert elastic.changes() == [*UP, (4, 3), (3, 2), (2, 1)]


def test_one_driver_did_it_and_every_record_came_once(elastic: Elastic) -> None:
    bench, subject = elastic.world.bench, elastic.world.subject(NAME)
    bench.until("every record", lambda: not elastic.world.missing(NAME))
    assert elastic.world.twice(NAME) == []
    assert (subject.attempts(), subject.status["restarts"]["count"]) == (1, 0)
    assert not subject.condition("ScalingLimited")
