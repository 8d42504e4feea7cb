"""Stories of a driver that stands by (docs/protocol.md, "A driver stands by")."""

from __future__ import annotations

from simulation.epochs import Orders, SimulatedEpoch
from simulation.handover import OTHER, OWNER
from simulation.scheduler import MAX_STEPS
from simulation.story import begin, go, lost, reach, story, with_records
from simulation.turnstile import Process
from simulation.world import World

BATCHES = 5  # until an epoch that is to drain has done so
AT_ONCE = 1.0  # seconds in which a released lease is taken


def stands_by(world: World, orders: Orders | None = None) -> SimulatedEpoch:
    """A driver that stands by; it has looked at the lease."""
    standby = world.start(orders or Orders(standby=True))
    world.settle(standby)
    return standby


def drains(world: World, epoch: SimulatedEpoch) -> None:
    """An epoch ends its batch, and releases its lease."""
    epoch.draining = True
    for _ in range(BATCHES):
        world.work(epoch)
    world.advance(0.01)


def goes_on(world: World, standby: SimulatedEpoch, within: float) -> None:
    """The standby has the lease in time, and works on what came."""
    world.advance(within)
    if standby.driver is None:
        world.ledger.breaks("progress", f"{standby.host.name} has not taken the lease after {within:g} s")
    for shard in world.open_shards:
        world.put(shard)
    world.work(standby, 2)


def pair() -> tuple[World, SimulatedEpoch, SimulatedEpoch]:
    """An epoch that works, and one that stands by."""
    world = with_records(shards=2)
    first = begin(world)
    world.work(first)
    return world, first, stands_by(world)


def beside(world: World, first: SimulatedEpoch, standby: SimulatedEpoch, late: Process, *waits: float) -> World:
    """The standby watches while a task of the first driver is slow, and works if it has the lease; then the task goes on."""
    for seconds in waits:
        world.advance(seconds)
        if standby.driver is not None:
            world.work(standby)
            break
    go(world, late, 1)
    if standby.driver is None:
        world.work(first)
        drains(world, first)
        goes_on(world, standby, AT_ONCE)
    return world


@story
def a_standby_takes_a_released_lease() -> World:
    """A rollout: the first driver drains, and the next one works within a second."""
    world, first, standby = pair()
    world.advance(100)
    world.put(world.open_shards[0])
    world.work(first)
    drains(world, first)
    goes_on(world, standby, AT_ONCE)
    return world


@story
def a_standby_takes_an_expired_lease() -> World:
    """The first driver's node dies in the middle of a batch. A task of it binds late."""
    world, first, standby = pair()
    world.put(world.open_shards[0])
    late = reach(world, first, "bind")[1]
    world.freeze(late)
    world.crash(first)
    goes_on(world, standby, 12 * 1.05 + AT_ONCE)
    world.thaw(late, 3)
    return world


@story
def a_standby_beside_a_driver_that_works() -> World:
    """Whose task stands before it emits. The standby takes nothing, however long it watches."""
    world = with_records(shards=2)
    first = begin(world)
    late = reach(world, first, "emit")[1]
    return beside(world, first, stands_by(world), late, 5, 12)


@story
def a_standby_whose_table_is_rewritten_meanwhile() -> World:
    """It stands by while batches are committed, shards split, and another driver takes the lease; then it is its turn."""
    world, first, standby = pair()
    for shard in world.open_shards:
        world.put(shard, 2)
    world.work(first, 2)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard)
    world.work(first, 3)
    world.freeze(standby.host)  # else it would be its turn already
    drains(world, first)
    between = world.start(Orders())
    world.settle(between)
    world.put(world.open_shards[0], 2)
    world.work(between, 2)
    world.thaw(standby.host, MAX_STEPS)
    drains(world, between)
    goes_on(world, standby, 2 * AT_ONCE)
    return world


@story
def a_standby_and_a_reset() -> World:
    """Its lease is a person's for a while, whose command dies between naming its plan and moving rows. The standby completes it."""
    world, first, standby = pair()
    world.freeze(standby.host)
    drains(world, first)
    world.advance(3)
    command = world.reset("trimHorizon", "r0")
    while not command.host.at.startswith("move"):
        world.step(command, command.host, None)
    world.crash(command)
    world.thaw(standby.host, MAX_STEPS)
    goes_on(world, standby, 60)
    return world


@story
def a_standby_whose_stream_is_made_again() -> World:
    """Under its name, while it stands by. The first driver ends; the standby does not begin."""
    world, first, standby = pair()
    world.recreate(1)
    world.put(world.open_shards[0])
    world.work(first)
    world.crash(first)
    world.advance(12 * 1.05 + AT_ONCE)
    if not standby.host.done and standby.driver is not None:
        world.work(standby)
    return world


@story
def a_standby_and_a_handover() -> World:
    """The table is given to another owner while a driver of the former one stands by, and the lease is free then."""
    world, first, standby = pair()
    world.freeze(standby.host)
    drains(world, first)
    world.settle(world.hand_over(OTHER))
    world.thaw(standby.host, MAX_STEPS)
    world.advance(40)
    if standby.driver is not None:
        world.work(standby)
    if not standby.host.done:
        world.ledger.breaks("one_owner", f"a driver of {OWNER} still stands by")
    return world


@story
def a_standby_that_cannot_reach_the_table() -> World:
    """For a while, as its holder works. No answer is no silence of the holder."""
    world = with_records(shards=2)
    first = begin(world)
    late = reach(world, first, "emit")[1]
    standby = stands_by(world)
    standby.cut = True
    world.advance(16)
    standby.cut = False
    return beside(world, first, standby, late, 5)


@story
def a_standby_that_stood_still_before_its_take() -> World:
    """It has seen the lease released. Another driver takes it and works; then the standby's write goes out."""
    world, first, standby = pair()
    world.freeze(standby.host)
    drains(world, first)
    world.advance(AT_ONCE)
    del world.frozen[standby.host]
    while not standby.host.at.startswith("take"):
        world.step(standby, standby.host, None)
    world.freeze(standby.host)
    other = world.start(Orders())
    world.settle(other)
    world.put(world.open_shards[0])
    entry = reach(world, other, "emit")
    world.thaw(standby.host, MAX_STEPS)
    if standby.driver is not None:
        world.work(standby)
    go(world, entry[1], 1)
    world.work(other)
    return world


@story
def two_standbys() -> World:
    """Both see the lease released. One of them takes it; the other one stands by on, and is next."""
    world, first, standby = pair()
    other = stands_by(world)
    drains(world, first)
    world.advance(AT_ONCE)
    ahead, behind = (standby, other) if standby.driver is not None else (other, standby)
    world.put(world.open_shards[0])
    world.work(ahead)
    world.crash(ahead)
    goes_on(world, behind, 12 * 1.05 + AT_ONCE)
    return world


@story
def a_driver_that_stood_still_while_its_standby_took_over() -> World:
    """SIGSTOP for longer than the lease, then SIGCONT: it changes nothing any more."""
    world, first, standby = pair()
    world.put(world.open_shards[0])
    reach(world, first, "commit")
    world.freeze_epoch(first)
    goes_on(world, standby, 12 * 1.05 + AT_ONCE)
    if first.driver is not None and first.driver in world.frozen:
        world.thaw(first.driver, 20)
    world.work(standby)
    return world


@story
def a_standby_that_dies_with_the_driver() -> World:
    """Both nodes at once: the next driver starts as ever."""
    world, first, standby = pair()
    world.put(world.open_shards[0])
    late = lost(world, reach(world, first, "emit"))
    world.crash(standby)
    world.crash(first)
    heir = world.start(Orders())
    world.settle(heir)
    world.advance(40)
    world.work(heir)
    go(world, late, 1)
    return world
