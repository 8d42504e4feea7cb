"""Stories of what `process` does with a batch, and of a loop that idles (docs/protocol.md, "What returning means")."""

from __future__ import annotations

from simulation.epochs import Orders
from simulation.habits import EARLY, NOTHING, RAISE, READ, WAIVE, Habits
from simulation.story import begin, go, inherit, lost, reach, story, with_records
from simulation.world import World


@story
def a_replay_that_comes_too_early() -> World:
    """An epoch binds a batch and dies; `process` of the next epoch cannot deal with it yet, and says so without reading."""
    world = with_records(habits=Habits(processes=(NOTHING, READ)))
    former = begin(world)
    reach(world, former, "sink")
    world.crash(former)
    world.work(inherit(world))
    return world


@story
def a_replay_of_what_the_sink_has() -> World:
    """An epoch dies between its sink and the commit; `process` of the next epoch looks into the sink first, and returns without reading."""
    world = with_records(habits=Habits(processes=(READ,), looks_first=True))
    former = begin(world)
    reach(world, former, "commit")
    world.crash(former)
    world.work(inherit(world))
    return world


@story
def a_replay_that_is_waived() -> World:
    """`process` returns from a replay without reading: only what that batch contains is let go."""
    world = with_records(3, habits=Habits(processes=(WAIVE, READ)))
    former = begin(world)
    reach(world, former, "sink")
    world.crash(former)
    world.work(inherit(world))
    return world


@story
def a_query_that_ends_before_its_jobs() -> World:
    """Adaptive execution ends a join with an empty side; the tasks of the other side go on, and bind."""
    world = with_records(shards=2, habits=Habits(processes=(EARLY,)))
    epoch = begin(world)
    reach(world, epoch, "query")
    assert epoch.driver is not None
    go(world, epoch.driver, 3)
    world.work(epoch)
    return world


@story
def a_shard_that_joins_while_the_others_idle() -> World:
    """A shard's END is the last commit of an epoch. Its children join after the next batch, which reads the other shard and finds nothing."""
    world = with_records(shards=2)
    former = begin(world)
    world.work(former)
    world.split(world.open_shards[0])
    world.work(former)
    world.crash(former)
    for shard in world.open_shards[-2:]:
        world.put(shard)
    return world


@story
def a_shard_that_an_audit_finds() -> World:
    """A shard is split and its halves are listed before its END is read."""
    world = with_records(shards=2)
    epoch = begin(world)
    world.work(epoch)
    reach(world, epoch, "idle")
    world.split(world.open_shards[0])
    epoch.audit = True
    world.work(epoch, 3)
    return world


@story
def a_run_that_raises_while_a_task_of_it_is_cut_off() -> World:
    """In a session of its user's. The only attempt is cut off between bind and emission, and emits when the next run may have begun."""
    world = with_records(habits=Habits(own_session=True, attempts=1))
    former = begin(world)
    late = lost(world, reach(world, former, "emit"))
    world.work(former)
    world.advance(1)
    heir = world.start(Orders())
    world.settle(heir)
    world.work(heir)
    go(world, late, 1)
    return world


@story
def a_run_that_raises_and_is_followed_at_once() -> World:
    """In a session of its user's. All its tasks are over, so the next run begins without watching the lease."""
    world = with_records(habits=Habits(own_session=True, processes=(READ, RAISE)))  # by batch and generation: the second epoch reads
    former = begin(world)
    world.work(former)
    world.advance(1)
    heir = world.start(Orders())
    world.settle(heir)
    if heir.driver is None:
        world.ledger.breaks("progress", "the next run watches a lease that nothing works under")
    world.work(heir)
    return world
