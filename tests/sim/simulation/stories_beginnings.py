"""Stories of how a table begins: by a bootstrap or by a migration; and of a stream that is made again under its name."""

from __future__ import annotations

from simulation.epochs import Orders, SimulatedEpoch
from simulation.story import begin, inherit, reach, story, with_records
from simulation.world import World


def replacing(records: int = 3, read: int = 1) -> World:
    """A world in which KCL has read some of the records."""
    world = with_records(records, shards=2)
    world.kcl(dict.fromkeys(world.open_shards, read))
    return world


def come_to(world: World, epoch: SimulatedEpoch, *calls: str) -> SimulatedEpoch:
    """A supervisor or a Job goes on, and waits where it has to, until it stands before one of these calls."""
    for _ in range(400):
        if epoch.host.done or epoch.host.at.startswith(calls):
            return epoch
        if epoch.host.waiting is not None and not world.ready(epoch.host):
            assert epoch.host.waiting.wake is not None
            world.time = max(world.time, epoch.host.waiting.wake)
        world.step(epoch, epoch.host, None)
    raise AssertionError(f"{epoch.host.name} never comes to {calls}")


def late(world: World, epoch: SimulatedEpoch) -> SimulatedEpoch:
    """It stands still where it is."""
    world.freeze(epoch.host)
    return epoch


def whole(world: World, epoch: SimulatedEpoch) -> SimulatedEpoch:
    """It runs to its end, or for as long as a migration takes."""
    world.settle(epoch)
    world.advance(200)
    return epoch


@story
def a_driver_after_its_migration() -> World:
    """The usual case; a second pod of the Job finds nothing to do."""
    world = replacing()
    whole(world, world.migrate())
    epoch = whole(world, world.start(Orders(migrate=True)))
    world.work(epoch)
    whole(world, world.migrate())
    return world


@story
def a_driver_before_its_migration() -> World:
    """It starts though the Job has not, and again while the Job is half-way; then the Job ends, and it is let in."""
    world = replacing()
    whole(world, world.start(Orders(migrate=True)))
    job = come_to(world, world.migrate(), "transact ['migration', 'consumer']")
    whole(world, world.start(Orders(migrate=True)))
    whole(world, job)
    world.work(whole(world, world.start(Orders(migrate=True))))
    return world


@story
def a_bootstrap_beside_a_claim() -> World:
    """A driver that knows nothing of a migration has written its plan; the Job claims the table; the driver goes on."""
    world = replacing()
    driver = late(world, come_to(world, world.start(Orders()), "transact ['consumer']"))
    job = come_to(world, world.migrate(), "transact ['shard/")
    world.thaw(driver.host, 400)
    whole(world, job)
    return world


@story
def a_claim_beside_a_bootstrap() -> World:
    """A Job has found an empty table; a driver begins on it, and reads; the Job goes on."""
    world = replacing(read=0)
    job = late(world, come_to(world, world.migrate(), "transact ['migration']"))
    epoch = whole(world, world.start(Orders()))
    world.work(epoch, 2)
    world.thaw(job.host, 400)
    world.advance(200)
    world.work(epoch)
    return world


@story
def a_late_copy_under_a_driver() -> World:
    """A Job stands still before it writes rows; a second one waits for its claim, and ends; a driver reads; the first goes on."""
    world = replacing()
    first = late(world, come_to(world, world.migrate(), "transact ['shard/"))
    whole(world, world.migrate())
    epoch = whole(world, world.start(Orders(migrate=True)))
    world.work(epoch, 2)
    world.thaw(first.host, 400)
    world.work(epoch)
    return world


@story
def a_late_end_under_a_driver() -> World:
    """A Job stands still before its last write; a second one ends, a driver reads, and the first goes on."""
    world = replacing()
    first = late(world, come_to(world, world.migrate(), "transact ['migration', 'consumer']"))
    whole(world, world.migrate())
    epoch = whole(world, world.start(Orders(migrate=True)))
    world.work(epoch, 2)
    world.thaw(first.host, 400)
    world.work(epoch)
    return world


@story
def a_job_that_crashed_half_way() -> World:
    """Its rows stand there, its claim runs out; a driver is refused, another Job ends it."""
    world = replacing()
    job = come_to(world, world.migrate(), "transact ['migration', 'consumer']")
    world.crash(job)
    whole(world, world.start(Orders()))
    whole(world, world.migrate())
    world.work(whole(world, world.start(Orders(migrate=True))))
    return world


# -- another stream ----------------------------------------------------------------------------------------------------------------


@story
def another_stream_between_two_epochs() -> World:
    """The stream is deleted and made again while nobody works; records are in it."""
    world = with_records()
    epoch = begin(world)
    world.work(epoch)
    world.crash(epoch)
    world.recreate(2)
    for shard in world.open_shards:
        world.put(shard)
    world.work(inherit(world), 2)
    return world


@story
def another_stream_under_an_idle_shard() -> World:
    """A shard was never read; the stream is made again, and records are in the shard of that id."""
    world = World(1)
    epoch = begin(world)
    reach(world, epoch, "fetch")
    world.recreate(1)
    world.put(world.open_shards[0], 2)
    world.work(epoch, 2)
    return world


@story
def another_stream_under_an_end() -> World:
    """As before, and the new shard of that id is closed already."""
    world = World(1)
    epoch = begin(world)
    reach(world, epoch, "fetch")
    world.recreate(1)
    world.split(world.open_shards[0])
    world.work(epoch, 2)
    return world


@story
def another_stream_before_an_audit() -> World:
    """The new stream has more shards than the old one; the audit lists them."""
    world = with_records()
    epoch = begin(world)
    world.work(epoch)
    world.recreate(3)
    epoch.audit = True
    world.work(epoch)
    return world


@story
def another_stream_during_a_migration() -> World:
    """It is made again while the Job waits for the source to rest."""
    world = replacing()
    job = come_to(world, world.migrate(), "sleep")
    world.recreate(2)
    for shard in world.open_shards:
        world.put(shard)
    whole(world, job)
    return world
