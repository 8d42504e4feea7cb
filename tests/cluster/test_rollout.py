"""`spec.rollout.strategy: Standby` on a real cluster: the next driver is ready before the present one ends; without room, a rollout is a restart."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from cluster_bench import Bench
from rules_world import Subject, World, world

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

NAME = "rolling"
INTERVAL = 5  # seconds; the chart's own
QUOTA = "no-second-driver"


@dataclass
class Timings:
    """When batches came to the sink, while a record is put on every shard at each look.

    Attributes:
        began, ended: seconds since 1970.
        together: drivers that were there at a time, at most.
    """

    world: World
    began: float = field(default_factory=time.time)
    ended: float = math.inf
    together: int = 0

    def look(self) -> list[dict[str, Any]]:
        self.world.put(1)
        self.together = max(self.together, len(self.world.subject(NAME).uids("driver")))
        return self.world.kept(NAME)

    def longest(self) -> float:
        """Seconds from one batch to the next, at most, as the sink has them."""
        times: list[float] = sorted(batch["at"] for batch in self.world.kept(NAME) if self.began <= batch["at"] <= self.ended)
        return max(after - before for before, after in itertools.pairwise(times))


@pytest.fixture(scope="module")
def rolling(bench: Bench) -> Iterator[World]:
    with world(bench, "rollout", shards=2) as found:
        how = {"batch": {"intervalSeconds": INTERVAL}, "rollout": {"strategy": "Standby", "readySeconds": 120}}
        bench.apply(found.manifest(NAME, args={"label": "one"}, **how))
        found.put()
        bench.until("it has all", lambda: found.subject(NAME).settled(1) and not found.missing(NAME))
        yield found


@pytest.fixture(scope="module")
def rolled(rolling: World) -> Timings:
    timings = Timings(rolling)
    rolling.bench.until("a batch of one", lambda: any(batch["at"] >= timings.began for batch in timings.look()))
    deploy(rolling, "two")
    rolling.bench.until("a few batches of two", lambda: [batch["label"] for batch in timings.look()].count("two") > 2)
    timings.ended = time.time()
    return timings


def deploy(found: World, label: str) -> Subject:
    subject = found.subject(NAME)
    subject.patch(pipeline={"args": found.args(label=label)})
    return subject


def test_nothing_is_lost_or_kept_twice_and_the_former_version_does_not_come_back(rolled: Timings) -> None:
    assert rolled.together == 2
    found = rolled.world
    found.bench.until("the sink has all", lambda: not found.missing(NAME))
    assert found.twice(NAME) == []
    drivers = {label: {row["by"] for row in found.kept(NAME) if row["label"] == label} for label in ("one", "two")}
    assert drivers == {"one": {f"{NAME}-driver-1"}, "two": {f"{NAME}-driver-2"}}
    assert found.subject(NAME).attempts() == 2


def test_it_ends_ready_with_one_driver_and_its_events_say_what_was_done(rolled: Timings) -> None:
    subject = rolled.world.subject(NAME)
    rolled.world.bench.until("Ready with one driver", lambda: subject.settled(1) and len(subject.uids("driver")) == 1)
    assert not subject.condition("StandbyReady")
    events = rolled.world.bench.events(NAME)
    assert [reason for reason in ("StandbyStarting", "StandbyReady") if not any(each.startswith(reason) for each in events)] == []


@pytest.fixture(scope="module")
def restarted(rolled: Timings) -> Timings:
    """A third version was deployed, without room for two drivers: a quota refuses the standby."""
    found, bench = rolled.world, rolled.world.bench
    timings = Timings(found)
    pods = len(bench.get("pods"))
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": QUOTA}, "spec": {"hard": {"pods": str(pods)}}}
    bench.apply(quota)
    try:
        found.subject(NAME).patch(rollout={"readySeconds": 30})
        subject = deploy(found, "three")
        bench.until("it says why", lambda: timings.look() and subject.condition("StandbyReady").get("reason") == "StandbyWithoutRoom")
        assert "exceeded quota" in subject.condition("StandbyReady")["message"]
        bench.until("three works", lambda: "three" in [batch["label"] for batch in timings.look()])
        bench.until("the sink has all", lambda: subject.settled(1) and not found.missing(NAME))
    finally:
        bench.kubectl("delete", "resourcequota", QUOTA)
    return timings


def test_a_namespace_without_room_for_two_drivers_restarts_instead(restarted: Timings) -> None:
    assert restarted.world.twice(NAME) == []
    assert restarted.together == 1


def test_a_rollout_leaves_no_longer_gap_than_two_intervals_and_three_seconds_or_half_of_that_of_a_restart(
    rolled: Timings, restarted: Timings
) -> None:
    """From batch to batch, as the sink sees them. The second bound is for a machine that runs other tests: there, a restart takes longer, too."""
    gap, without = rolled.longest(), restarted.longest()
    logging.getLogger(__name__).warning("longest time without a batch: %.1f s, and %.1f s of a restart", gap, without)
    assert gap <= max(2 * INTERVAL + 3, without / 2)
