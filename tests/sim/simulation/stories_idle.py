"""Stories of idle shards that batches leave out (docs/protocol.md, "Idle shards")."""

from __future__ import annotations

from simulation.epochs import SimulatedEpoch
from simulation.habits import NOTHING, READ, Habits
from simulation.story import begin, inherit, reach, story, with_records
from simulation.world import World

HOUR = 3600
FAR = 400  # empty replies: more than a probe follows within the time in which everything has to arrive


def beside_a_busy_shard(world: World, lease: float = 12.0) -> SimulatedEpoch:
    """An epoch that has read all and probed the idle shards; the first shard brings a record with every batch."""
    epoch = begin(world, lease)
    world.work(epoch, 3)
    goes_on(world, epoch)
    return epoch


def goes_on(world: World, epoch: SimulatedEpoch, batches: int = 2) -> None:
    """The first shard brings a record for each of some batches; a second passes before each."""
    for _ in range(batches):
        world.advance(1)
        world.put(world.open_shards[0])
        world.work(epoch)


@story
def a_record_in_a_shard_that_was_left_out() -> World:
    """The other shard is busy; batches leave this one out, until it brings something."""
    world = with_records(shards=2)
    epoch = beside_a_busy_shard(world)
    world.put(world.open_shards[1], 3)
    goes_on(world, epoch)
    world.deliver(epoch)
    return world


@story
def a_record_between_the_probe_and_the_plan() -> World:
    """The shard was probed and is left out; the record comes before the batch reads the other one."""
    world = with_records(shards=2)
    epoch = beside_a_busy_shard(world)
    world.advance(1)
    world.put(world.open_shards[0])
    world.step(*reach(world, epoch, "probe"))
    world.put(world.open_shards[1])
    world.deliver(epoch)
    return world


@story
def a_split_of_a_shard_that_was_left_out() -> World:
    """It ends while it is left out; records are in its children."""
    world = with_records(shards=2)
    epoch = beside_a_busy_shard(world)
    world.split(world.open_shards[1])
    for shard in world.open_shards[-2:]:
        world.put(shard)
    goes_on(world, epoch, 3)
    world.deliver(epoch)
    return world


@story
def a_merge_with_a_shard_that_was_left_out() -> World:
    """A busy shard and an idle one are merged; the one's END is read batches before the other's."""
    world = with_records(shards=2)
    epoch = beside_a_busy_shard(world)
    low, _ = world.open_shards
    world.put(low, 5)
    world.merge(low)
    world.put(world.open_shards[0])
    epoch.audit = True
    world.work(epoch, 4)
    return world


@story
def a_crash_in_a_batch_that_left_a_shard_out() -> World:
    """The sink has the batch; a record comes in the shard that it left out; the next epoch replays the batch, and reads before its sink skips it."""
    world = with_records(shards=2, habits=Habits(looks_first=False))
    epoch = beside_a_busy_shard(world)
    world.advance(1)
    world.put(world.open_shards[0])
    reach(world, epoch, "commit")
    world.put(world.open_shards[1])
    world.crash(epoch)
    world.work(inherit(world), 2)
    return world


@story
def a_shard_that_a_former_epoch_found_idle() -> World:
    """It dies; records come in both shards; the next epoch has probed none of them."""
    world = with_records(shards=2)
    epoch = beside_a_busy_shard(world)
    world.crash(epoch)
    heir = inherit(world)
    reach(world, heir, "next batch")
    world.put(world.open_shards[1])
    goes_on(world, heir)
    world.deliver(heir)
    return world


@story
def news_that_process_does_not_read() -> World:
    """A probe finds a record; `process` returns without reading, so the batch holds nothing of it, and the shard's place stays the same."""
    world = with_records(shards=2, habits=Habits(processes=(READ, READ, READ, READ, READ, NOTHING, NOTHING, NOTHING)))
    epoch = beside_a_busy_shard(world)
    world.put(world.open_shards[1])
    goes_on(world, epoch, 3)
    world.deliver(epoch)
    return world


@story
def a_record_far_behind_the_probe() -> World:
    """The iterator of an idle, sparse shard has expired; a probe takes minutes from its place to the tip, where a record is. A batch goes faster."""
    world = World(1, Habits(sparse=FAR))
    epoch = begin(world)
    world.work(epoch, 40)
    world.advance(400)
    world.put(world.open_shards[0])
    world.deliver(epoch)
    return world


@story
def a_sparse_shard_far_behind_the_tip() -> World:
    """Its first range ends on the way, without a record; there is one farther on."""
    world = with_records(habits=Habits(sparse=FAR))
    epoch = begin(world)
    world.work(epoch, 3)
    world.deliver(epoch)
    return world


@story
def a_record_after_more_than_a_retention() -> World:
    """A shard is idle for longer than the stream keeps records, in one epoch; then a record comes."""
    world = World(1)
    world.stream.retention_millis = 2 * HOUR * 1000
    epoch = begin(world, 30)
    for _ in range(6):
        world.work(epoch, 2)
        world.advance(HOUR // 2)
        epoch.audit = True
    world.work(epoch, 2)
    world.put(world.open_shards[0])
    world.work(epoch, 2)
    return world


@story
def records_in_idle_shards_that_are_probed_in_turns() -> World:
    """Only one idle shard is probed a second; records come in the last ones."""
    world = with_records(shards=5, habits=Habits(probes=1))
    epoch = begin(world)
    world.work(epoch, 6)
    goes_on(world, epoch, 3)
    for shard in world.open_shards[-2:]:
        world.put(shard)
    goes_on(world, epoch, 3)
    world.deliver(epoch)
    return world


@story
def a_record_beside_a_shard_that_stays_full() -> World:
    """Its batches leave the others out; an interval later all take part, though it is full then, too."""
    world = with_records(shards=2, habits=Habits(interval=5.0))
    epoch = begin(world)
    world.work(epoch, 3)
    full, other = world.open_shards
    world.put(full, 40)
    world.work(epoch, 2)
    world.put(other)
    for _ in range(8):
        world.advance(1)
        world.work(epoch)
    if other in str(world.ledger.missing()):
        world.ledger.breaks("progress", f"{other} was left out for longer than an interval")
    world.deliver(epoch)
    return world


@story
def a_record_beside_a_full_shard_whose_drivers_die() -> World:
    """Each dies in a batch of the full shard, sooner than an interval. That batch comes again without the other shard; the next is of both."""
    world = with_records(shards=2, habits=Habits(interval=600.0))
    former = begin(world)
    world.work(former, 3)
    full, other = world.open_shards
    world.put(full, 60)
    world.advance(600)
    world.work(former, 2)
    world.put(other)
    for _ in range(2):
        reach(world, former, "emit")
        world.crash(former)
        former = inherit(world)
        world.work(former, 2)
    if other in str(world.ledger.missing()):
        world.ledger.breaks("progress", f"{other} was left out by every driver")
    world.deliver(former)
    return world


@story
def shards_that_are_refreshed_one_a_batch() -> World:
    """A batch an hour, so there is no time to refresh them in turns; the stream keeps records for five hours and a half."""
    world = World(8, Habits(refreshes=1))
    world.stream.retention_millis = 11 * HOUR // 2 * 1000
    epoch = begin(world, 30)
    world.work(epoch, 4)
    for _ in range(16):
        world.advance(HOUR)
        epoch.audit = True
        world.work(epoch)
    for shard in world.open_shards:
        world.put(shard)
    world.work(epoch, 4)
    return world
