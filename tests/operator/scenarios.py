"""What several tests let happen to a resource, in virtual time."""

from __future__ import annotations

from typing import Any

from operator_world import MIGRATING, SPEC, World, assert_nothing_left, ready

Json = dict[str, Any]


def started(spec: Json = SPEC) -> World:
    """A world with a running consumer."""
    world = World()
    world.apply(spec)
    assert world.run(60, until=lambda: ready(world)), world.status
    return world


def live(world: World) -> World:
    """Create, migrate (the source is active at first), start, scale, restart, fail, suspend, resume, delete."""
    world.job_exits = [75]
    world.apply(MIGRATING)
    reach(world)
    world.apply({**MIGRATING, "replicas": 3})
    reach(world)
    assert len(world.executors()) == 3
    world.apply({**MIGRATING, "batch": {"intervalSeconds": 9}})
    reach(world)
    world.driver_exits = [1]
    assert world.run(60, until=lambda: not world.driver_exits)
    reach(world)
    world.apply({**MIGRATING, "suspend": True})
    assert world.run(120, until=lambda: world.status["phase"] == "Suspended"), world.status
    world.apply(MIGRATING)
    reach(world)
    world.delete()
    world.run(60, until=lambda: world.resource() is None and not list(world.twin.all("Pod")) and world.wake is None)
    assert_nothing_left(world)
    return world


def reach(world: World) -> None:
    """The present spec is carried out."""
    assert world.run(240, until=lambda: ready(world)), world.status
