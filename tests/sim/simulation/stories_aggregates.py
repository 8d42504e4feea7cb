"""Stories of aggregates: Kinesis records that hold several user records (docs/protocol.md, "Rows": a position inside of one)."""

from __future__ import annotations

from simulation.epochs import Orders, SimulatedEpoch
from simulation.habits import TWICE, Habits
from simulation.story import begin, inherit, reach, story
from simulation.world import World


def after_kcl(world: World, read: int, lease: float = 12.0) -> SimulatedEpoch:
    """An epoch on a table that was migrated after KCL had read so many user records of each shard."""
    world.kcl(dict.fromkeys(world.open_shards, read))
    world.settle(world.migrate())
    world.advance(200)
    epoch = world.start(Orders(lease, migrate=True))
    world.settle(epoch)
    return epoch


def packed(habits: Habits | None = None) -> World:
    """A shard with a record alone, three in an aggregate, none in another, two in a third, and one alone."""
    world = World(1, habits)
    for records in (1, 3, 0, 2, 1):
        world.put(world.open_shards[0], records, together=records != 1)
    return world


@story
def aggregates_around_a_limit() -> World:
    """A batch may hold two user records; an aggregate of three is taken whole or left for the next."""
    world = packed()
    world.work(begin(world), 5)
    return world


@story
def a_replay_of_aggregates() -> World:
    """A batch with two aggregates is bound, and not emitted, when the driver dies; the next epoch reads it twice."""
    world = packed(Habits(limit=8, processes=(TWICE,)))
    former = begin(world)
    reach(world, former, "emit")
    world.crash(former)
    world.work(inherit(world))
    return world


@story
def a_place_inside_an_aggregate() -> World:
    """KCL stopped after the second of three user records."""
    world = packed()
    world.work(after_kcl(world, 3), 4)
    return world


@story
def a_replay_from_inside_an_aggregate() -> World:
    """The rest of an aggregate and what follows is bound, and not emitted, when the driver dies."""
    world = packed(Habits(limit=8))
    former = after_kcl(world, 2)
    reach(world, former, "emit")
    world.crash(former)
    heir = world.start(Orders(migrate=True))
    world.settle(heir)
    world.advance(40)
    world.work(heir)
    return world


@story
def a_loss_inside_an_aggregate() -> World:
    """The rest of an aggregate is bound when retention takes it."""
    world = packed(Habits(limit=8))
    former = after_kcl(world, 2)
    reach(world, former, "emit")
    world.overtake(3)
    heir = world.start(Orders(migrate=True, accept=1))
    world.settle(heir)
    world.advance(40)
    world.work(heir)
    return world
