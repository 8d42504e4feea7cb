"""What several tests let happen to a resource, in virtual time."""

from __future__ import annotations

from typing import Any

from simulated_cluster import MIGRATING, SPEC, SimulatedCluster, assert_nothing_left, ready
from steering.finish import left

Json = dict[str, Any]


def started(spec: Json = SPEC) -> SimulatedCluster:
    world = SimulatedCluster()
    world.apply(spec)
    assert world.run(60, until=lambda: ready(world)), world.status
    return world


def live(world: SimulatedCluster, spec: Json = MIGRATING) -> SimulatedCluster:
    """Create, migrate (the source is active at first), start, scale, restart, fail, suspend, resume, delete."""
    world.habits.job_exits = [75]
    world.apply(spec)
    reach(world)
    world.apply({**spec, "replicas": 3})
    reach(world)
    assert len(world.executors()) == 3
    world.apply({**spec, "batch": {"intervalSeconds": 9}})
    reach(world)
    world.habits.exits = [1]
    assert world.run(60, until=lambda: not world.habits.exits)
    reach(world)
    world.apply({**spec, "suspend": True})
    assert world.run(120, until=lambda: world.status["phase"] == "Suspended"), world.status
    world.apply(spec)
    reach(world)
    world.delete()
    world.run(60, until=lambda: not left(world))
    assert_nothing_left(world)
    return world


def reach(world: SimulatedCluster) -> None:
    assert world.run(240, until=lambda: ready(world)), world.status
