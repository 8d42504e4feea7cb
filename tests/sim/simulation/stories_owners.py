"""Stories of two owners of one table (see `story`)."""

from __future__ import annotations

from simulation.epochs import Orders, SimulatedEpoch
from simulation.handover import OTHER, OWNER
from simulation.story import begin, go, reach, story, with_records
from simulation.world import World


def drained() -> World:
    """The owner's driver has worked, and has released the lease; more records came."""
    world = with_records()
    epoch = begin(world)
    world.work(epoch)
    epoch.draining = True
    world.work(epoch)
    world.advance(1)
    world.put(world.open_shards[0])
    return world


def comes(world: World, orders: Orders) -> SimulatedEpoch:
    """A driver starts, and works if it can."""
    epoch = world.start(orders)
    world.settle(epoch)
    world.advance(40)
    world.work(epoch)
    return epoch


@story
def a_second_owner() -> World:
    """The lease is free when the driver of another owner starts: a copy of the manifest under another name."""
    world = drained()
    comes(world, Orders(owner=OTHER))
    return world


@story
def a_second_owner_by_force() -> World:
    """As before, while the owner's driver works; somebody has given up a pod of the other one."""
    world = with_records()
    epoch = begin(world)
    world.work(epoch)
    world.put(world.open_shards[0])
    comes(world, Orders(owner=OTHER, force=True))
    return world


@story
def an_owner_of_another_cluster() -> World:
    """The same manifest, in a second cluster of the same account."""
    world = drained()
    comes(world, Orders(clusters=("c2",)))
    return world


@story
def a_cluster_gets_a_name() -> World:
    """The chart's clusterName is set: its drivers know both, and go on. Later it is rebuilt, and has the name alone."""
    world = drained()
    comes(world, Orders(clusters=("prod", "c1"))).draining = True
    world.advance(40)
    world.put(world.open_shards[0])
    comes(world, Orders(clusters=("prod", "c9")))
    return world


@story
def a_cluster_gets_another_name() -> World:
    """The chart's clusterName is changed, later taken away: the uid is in the table beside it."""
    world = drained()
    for clusters in (("prod", "c1"), ("prod-eu", "c1"), ("c1",)):
        comes(world, Orders(clusters=clusters)).draining = True
        world.advance(40)
        world.put(world.open_shards[0])
    return world


@story
def an_owner_after_a_run_without_one() -> World:
    """A driver that knows of no owner has worked; then one that does; then another owner's."""
    world = with_records()
    run = world.start(Orders(owner=""))
    world.settle(run)
    reach(world, run, "next batch")
    world.work(run)
    world.crash(run)
    world.put(world.open_shards[0])
    comes(world, Orders())
    world.crash(world.epochs[-1])
    comes(world, Orders(owner=OTHER))
    return world


@story
def a_handover() -> World:
    """The owner's driver has drained; a person hands the table over; then a driver of each starts."""
    world = drained()
    world.settle(world.hand_over(OTHER))
    comes(world, Orders(owner=OWNER))
    comes(world, Orders(owner=OTHER))
    return world


@story
def a_handover_under_a_driver() -> World:
    """The owner's driver works when a person hands the table over; a driver of the other owner starts."""
    world = with_records()
    former = begin(world)
    late = reach(world, former, "emit")[1]
    world.settle(world.hand_over(OTHER))
    other = world.start(Orders(owner=OTHER))
    world.settle(other)
    world.work(other)
    go(world, late, 1)
    world.advance(40)
    return world
