"""Stories of epochs, batches and shards (see `story`)."""

from __future__ import annotations

from simulation.epochs import Orders
from simulation.habits import READ, SWALLOW, Habits
from simulation.ports import STALE, THROTTLED
from simulation.story import TURNS, begin, beside, go, inherit, lost, reach, story, with_records
from simulation.world import World


@story
def a_bind_between_scan_and_fence() -> World:
    """A usurper reads the rows; a task of the former epoch binds; then the rows are fenced."""
    world = with_records(shards=2)
    former = begin(world)
    late = beside(world, former, reach(world, former, "emit")[1])
    world.crash(former)
    usurper = world.start(Orders(12, force=True))
    world.settle(usurper)
    reach(world, usurper, "fence", "list")
    go(world, late, 1)
    world.work(usurper)
    world.advance(20)
    world.work(usurper)
    return world


@story
def a_bind_after_the_take_over() -> World:
    """A task that stood still before its bind goes on when the next epoch has committed that batch."""
    world = with_records(shards=2)
    former = begin(world)
    late = beside(world, former, reach(world, former, "emit")[1])
    world.freeze(late)
    world.crash(former)
    world.work(inherit(world))
    world.thaw(late, 2)
    return world


@story
def a_crash_after_the_end_was_bound() -> World:
    """The last range of a shard, with records, is bound to END, and not emitted, when the driver dies."""
    world = with_records(habits=Habits(end_with_records=True))
    former = begin(world)
    world.split(world.open_shards[0])
    reach(world, former, "emit")
    world.crash(former)
    world.work(inherit(world))
    return world


@story
def children_after_a_take_over() -> World:
    """The end of a shard is committed, its children have no rows, and the driver dies."""
    world = with_records()
    former = begin(world)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard)
    world.work(former)
    world.crash(former)
    return world


@story
def a_late_creation_of_children() -> World:
    """A driver stands still before it creates children; another epoch creates them and reads on; the first one goes on."""
    world = with_records()
    former = begin(world)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard, 3)
    world.work(former)
    late = reach(world, former, "transact", "put shard")[1]
    world.freeze_epoch(former)
    world.work(inherit(world), 4)
    world.thaw(late, 2)
    return world


@story
def one_parent_of_a_merge_has_more() -> World:
    """Two shards are merged; one of them takes two batches longer than the other."""
    world = World(2)
    low, high = world.open_shards
    world.put(low, 1)
    world.put(high, 20)
    epoch = begin(world)
    world.merge(low)
    world.put(world.open_shards[0], 2)
    epoch.audit = True
    world.work(epoch, 6)
    return world


@story
def a_late_commit() -> World:
    """A driver stands still before its commit, and goes on three batches of the next epoch later."""
    world = with_records(8)
    former = begin(world)
    late = reach(world, former, "commit")[1]
    world.freeze_epoch(former)
    world.work(inherit(world), 3)
    world.thaw(late, 1)
    return world


@story
def a_retry_beside_its_former_attempt() -> World:
    """A task's executor is cut off between bind and emission; its retry emits, and then the first attempt does."""
    world = with_records(habits=Habits(limit=8))
    epoch = begin(world)
    late = lost(world, reach(world, epoch, "emit"))
    world.work(epoch)
    go(world, late, 1)
    return world


@story
def a_late_fetch_after_an_empty_range() -> World:
    """A task is cut off before it fetches; its retry binds an empty range; a record arrives, and the first attempt fetches it."""
    world = World(1)
    epoch = begin(world)
    late = lost(world, reach(world, epoch, "fetch"))
    reach(world, epoch, "emit")
    world.put(world.open_shards[0])
    go(world, late, 2)
    return world


@story
def a_late_bind_after_the_close() -> World:
    """The only attempt is cut off before its bind, `process` goes on without it, the batch is committed, and the attempt binds."""
    world = with_records(habits=Habits(processes=(SWALLOW, READ), attempts=1, only_close=True))
    epoch = begin(world)
    world.work(epoch)
    late = lost(world, reach(world, epoch, "bind"))
    world.work(epoch)
    go(world, late, 1)
    return world


@story
def a_merge_that_is_known_before_its_other_parent() -> World:
    """A shard that lags is split, and a half of it merged with one that does not lag: that one's end names the merge before anybody knows that."""
    world = World(2, Habits(limit=1))
    first, second = world.open_shards
    world.put(second, 3)
    epoch = begin(world)
    world.split(second)
    low = world.open_shards[1]
    world.put(low)
    world.merge(first)
    world.put(world.open_shards[-1])
    world.work(epoch, 6)
    return world


@story
def a_task_that_starts_batches_later() -> World:
    """It was given up before its first call, and makes that in the middle of a later batch; it is still its own batch's."""
    world = with_records(habits=Habits(limit=1), records=4)
    epoch = begin(world)
    late = lost(world, reach(world, epoch, "start"))
    world.work(epoch, 2)
    reach(world, epoch, "emit")
    go(world, late, 5)
    world.work(epoch)
    return world


@story
def a_swallowed_failure() -> World:
    """The only attempt is cut off after its bind, and `process` goes on without it."""
    world = with_records(habits=Habits(processes=(SWALLOW,), attempts=1))
    epoch = begin(world)
    lost(world, reach(world, epoch, "emit"))
    world.work(epoch)
    return world


@story
def a_usurper_that_dies() -> World:
    """An epoch with a long lease is cut off from the table; one with a short lease takes it by force and dies; a third one waits in line."""
    world = with_records()
    former = begin(world, 30)
    late = reach(world, former, "emit")[1]
    former.cut = True
    usurper = world.start(Orders(12, force=True))
    world.settle(usurper)
    world.crash(usurper)
    third = world.start(Orders())
    world.settle(third)
    world.advance(14)
    world.work(third)
    go(world, late, 1)
    world.advance(40)
    return world


@story
def two_clocks_that_differ() -> World:
    """An epoch on a slow clock is cut off from the table right after a beat; its watcher has a fast one; a task of it emits at the last moment."""
    world = with_records(habits=Habits(rates=(1.01, 0.99)))
    former = begin(world, 30)
    late = reach(world, former, "emit")[1]
    former.cut = True
    heir = world.start(Orders(30))
    world.settle(heir)
    world.advance(30 / 1.01 + 0.1)
    world.work(heir)
    go(world, late, 1)
    world.advance(40)
    return world


@story
def a_stale_listing() -> World:
    """A shard is split; whoever audits then is answered by a machine that has not heard of it."""
    world = with_records()
    epoch = begin(world)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard)
    epoch.audit = True
    entry = reach(world, epoch, "list")
    world.step(*entry, fault=STALE)
    world.work(epoch, 3)
    return world


@story
def a_first_start_on_a_stale_listing() -> World:
    """A consumer starts at LATEST right after a split that the listing does not know; records are in the children."""
    world = World(1)
    world.split(world.open_shards[0])
    epoch = world.start(Orders(start="LATEST"))
    entry = reach(world, epoch, "list")
    world.step(*entry, fault=STALE)
    world.settle(epoch)
    for shard in world.open_shards:
        world.put(shard, 2)
    world.work(epoch, 3)
    return world


@story
def a_throttled_batch() -> World:
    """The service makes every call of a batch wait, heartbeats too."""
    world = with_records(4, shards=2)
    epoch = begin(world)
    for _ in range(TURNS):
        for entry in world.runnable(epoch):
            if world.ready(entry[1], entry[2]):
                world.step(*entry, fault=THROTTLED)
        world.advance(0.5)
    return world


@story
def a_rival() -> World:
    """A second driver starts while the first one works."""
    world = with_records()
    former = begin(world)
    late = reach(world, former, "emit")[1]
    rival = world.start(Orders())
    world.settle(rival)
    world.work(rival)
    go(world, late, 1)
    return world


@story
def latest_with_a_crash_before_the_first_commit() -> World:
    """A consumer starts at LATEST and dies; records arrive; it starts again, later."""
    world = World(1)
    epoch = world.start(Orders(start="LATEST"))
    world.settle(epoch)
    world.crash(epoch)
    world.put(world.open_shards[0], 3)
    world.advance(3600)
    world.work(inherit(world))
    return world


@story
def a_split_before_its_children_are_known() -> World:
    """Records are in the children before anybody knows of them."""
    world = with_records()
    epoch = begin(world)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard)
    world.advance(5)
    epoch.audit = True
    world.work(epoch, 2)
    return world
