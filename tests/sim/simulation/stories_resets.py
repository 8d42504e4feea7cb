"""Stories of positions that a person moves (see `story`)."""

from __future__ import annotations

from typing import Any

from simulation.epochs import SimulatedEpoch
from simulation.habits import READ, Habits
from simulation.stories_poison import poisoned
from simulation.story import begin, inherit, reach, story, with_records
from simulation.world import World

from sluice_checkpoints.positions.target import ResetTarget


def suspended(world: World, batches: int = 3) -> World:
    """A driver has worked, and has drained."""
    epoch = begin(world)
    world.work(epoch, batches)
    epoch.draining = True
    world.work(epoch)
    world.advance(1)
    return world


def resets(world: World, to: str | float | ResetTarget = "trimHorizon", name: str = "one", **more: Any) -> SimulatedEpoch:
    """The command runs to its end, whatever it waits for."""
    command = world.reset(to, name, **more)
    goes_on(world, command)
    return command


def goes_on(world: World, command: SimulatedEpoch) -> None:
    """A command makes all its calls."""
    while not command.host.done:
        world.settle(command)
        if not command.host.done:
            world.advance(1)


def until(world: World, command: SimulatedEpoch, call: str) -> None:
    """A command goes on until it stands before such a call."""
    while not command.host.at.startswith(call):
        assert not command.host.done, f"it never comes to {call}: {command.host.error}"
        if world.ready(command.host):
            world.step(command, command.host, None)
        else:
            sleeps(world, command)


def sleeps(world: World, command: SimulatedEpoch) -> None:
    """Time passes until a command wakes up, which makes no call yet."""
    assert command.host.waiting is not None
    world.frozen[command.host] = world.time
    world.advance(max(0.0, (command.host.waiting.wake or 0.0) - world.time))
    del world.frozen[command.host]


def resharded() -> World:
    """A shard was split, and one of its children again; records came in each, and all were read."""
    world = with_records(2)
    epoch = begin(world)
    world.work(epoch, 2)
    for _ in range(2):
        world.advance(5)
        world.split(world.open_shards[-1])
        for shard in world.open_shards:
            world.put(shard, 2)
        world.work(epoch, 5)
    epoch.draining = True
    world.work(epoch)
    world.advance(5)
    return world


@story
def a_reset_to_the_oldest_record() -> World:
    """Over two splits: everything comes again, parents first."""
    world = resharded()
    resets(world)
    return world


@story
def a_reset_to_a_time_between_two_splits() -> World:
    """The first shard was over by then."""
    world = resharded()
    resets(world, to=world.time - 4)
    return world


@story
def a_reset_to_the_tip() -> World:
    """What waits is passed over, in shards that nobody has heard of as well."""
    world = resharded()
    for shard in world.open_shards:
        world.put(shard)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard)
    world.advance(10)
    resets(world, to="latest")
    for shard in world.open_shards:
        world.put(shard)
    return world


@story
def a_reset_over_a_merge() -> World:
    """The child waits for both parents again, and one of them is still read when a second reset comes."""
    world = with_records(2, shards=2)
    epoch = begin(world)
    world.work(epoch, 2)
    world.merge(world.open_shards[0])
    world.put(world.open_shards[0], 3)
    world.work(epoch, 5)
    epoch.draining = True
    world.work(epoch)
    world.advance(2)
    resets(world)
    heir = begin(world)
    reach(world, heir, "close", "bind", "commit")
    world.crash(heir)
    world.advance(40)
    resets(world, name="two", give_up=True)
    return world


@story
def a_reset_by_ten_minutes_over_a_split_and_a_merge() -> World:
    """Records of each minute, before the split, between, and after the merge."""
    world = with_records(2, shards=2)
    epoch = begin(world)
    for minute in range(15):
        if minute == 9:
            world.split(world.open_shards[0])
        if minute == 12:
            world.merge(world.open_shards[0])
        for shard in world.open_shards:
            world.put(shard)
        world.work(epoch, 3)
        world.advance(60)
    epoch.draining = True
    world.work(epoch)
    resets(world, to=world.time - 600)
    return world


@story
def a_reset_that_dies_between_two_moves() -> World:
    """The driver that comes next completes it before it plans."""
    world = resharded()
    command = world.reset("trimHorizon", "one")
    until(world, command, "move")
    world.step(command, command.host, None)
    world.crash(command)
    world.put(world.open_shards[0])
    inherit(world)
    return world


@story
def a_reset_that_dies_before_it_is_done() -> World:
    """All rows are moved, and the mark is missing. The driver says so, and works; then the command comes again with its id."""
    world = resharded()
    command = world.reset("trimHorizon", "one")
    until(world, command, "done")
    world.crash(command)
    heir = inherit(world)
    world.work(heir, 3)
    heir.draining = True
    world.work(heir)
    world.advance(5)
    resets(world)
    return world


@story
def a_reset_that_stands_still_while_a_driver_completes_it() -> World:
    """It continues when a batch is bound, and moves nothing any more."""
    world = resharded()
    command = world.reset("trimHorizon", "one")
    until(world, command, "move")
    world.freeze(command.host)
    world.put(world.open_shards[0], 2)
    heir = inherit(world)
    world.work(heir, 2)
    reach(world, heir, "commit")
    world.thaw(command.host, 50)
    return world


@story
def a_reset_that_stands_still_before_it_is_named() -> World:
    """A driver took its lease since, and worked: the plan is of rows that have moved."""
    world = resharded()
    command = world.reset("trimHorizon", "one")
    until(world, command, "transact")
    world.freeze(command.host)
    world.put(world.open_shards[0], 2)
    heir = inherit(world)
    world.work(heir, 3)
    world.thaw(command.host, 50)
    return world


@story
def a_reset_beside_a_driver_that_works() -> World:
    """The driver keeps its lease."""
    world = with_records(3)
    epoch = begin(world)
    world.work(epoch, 2)
    resets(world)
    world.put(world.open_shards[0])
    return world


@story
def a_reset_with_an_open_batch() -> World:
    """A driver died in its batch: the sink may have it. It is given up by its number, and its records come again."""
    world = with_records(3, shards=2)
    epoch = begin(world)
    world.work(epoch, 2)
    for shard in world.open_shards:
        world.put(shard, 2)
    reach(world, epoch, "commit")
    world.crash(epoch)
    world.advance(40)
    resets(world)
    resets(world, name="two", give_up=True)
    return world


def died(world: World, *calls: str) -> World:
    """A driver made one such call after the other, and died before the last."""
    epoch = begin(world)
    for call in calls[:-1]:
        world.step(*reach(world, epoch, call))
    reach(world, epoch, calls[-1])
    world.crash(epoch)
    world.advance(40)
    return world


@story
def a_reset_before_a_letter_is_published() -> World:
    """A driver died after the commit: the record is in no batch, and stands behind the new position. Its letter becomes final."""
    world = died(poisoned(), "publish")
    resets(world, to="latest")
    return world


@story
def a_reset_of_a_batch_without_its_record() -> World:
    """A record was excluded in it, and is passed over: its letter becomes final with the batch that is given up."""
    world = died(poisoned(), "exclude", "commit")
    resets(world, to="latest", give_up=True)
    return world


@story
def a_reset_to_the_record_that_was_excluded() -> World:
    """It comes again, and is excluded again: the letter of both is one."""
    world = died(poisoned(), "exclude", "commit")
    resets(world, give_up=True)
    return world


@story
def a_reset_in_a_search_for_a_record() -> World:
    """A batch is shortened by half when its driver dies. It is refused, then given up: whoever comes next searches anew."""
    world = died(poisoned(shards=4), "shorten", "shorten")
    resets(world)
    resets(world, name="two", give_up=True)
    return world


@story
def a_task_that_binds_after_the_plan() -> World:
    """Its driver died, and it stood still: it has read a range, and binds it when the rows were read for the plan."""
    world = with_records(3, shards=2, habits=Habits(processes=(READ,)))
    epoch = begin(world)
    entry = reach(world, epoch, "bind")
    world.freeze(entry[1])
    world.crash(epoch)
    world.advance(40)
    command = world.reset("latest", "one")
    until(world, command, "transact")
    if entry[1] in world.frozen:
        world.thaw(entry[1], 10)
    goes_on(world, command)
    return world


@story
def a_reset_of_some_shards() -> World:
    """The others continue."""
    world = resharded()
    last = max(world.open_shards)
    resets(world, shards=[last])
    return world


@story
def a_reset_of_a_parent_alone() -> World:
    """It is refused: its children were read before its records come again."""
    world = resharded()
    resets(world, shards=[min(world.stream.parents)])
    return world


@story
def a_reset_of_shards_whose_parent_is_still_read() -> World:
    """One of them is over, and would be passed over: then those that follow it would come before the rest of the parent."""
    world = with_records(3)
    first = world.open_shards[0]
    epoch = begin(world)
    world.split(first)
    second = world.open_shards[0]
    world.split(second)
    followers = world.open_shards[-2:]
    for shard in followers:
        world.put(shard)
    world.crash(epoch)
    world.advance(40)
    resets(world, to="latest", shards=[second, *followers])
    for shard in followers:
        world.put(shard)
    return world


@story
def a_reset_by_a_listing_that_is_late() -> World:
    """A machine of the service has not heard of the last split, whose children were read."""
    world = resharded()
    command = world.reset("trimHorizon", "one")
    while not command.host.done:
        stale = "stale" if command.host.at == "list" else None
        if world.ready(command.host):
            world.step(command, command.host, None, fault=stale)
        else:
            sleeps(world, command)
    return world


@story
def a_reset_after_records_expired() -> World:
    """It begins with what is there: what had expired is owed to nobody, and none of it is suspected."""
    world = resharded()
    world.overtake(2)
    resets(world)
    return world


@story
def records_that_expire_after_a_reset() -> World:
    """Of a child whose parents were open then: its row says how old it is."""
    world = resharded()
    world.advance(10_000)
    resets(world)
    world.overtake(1)
    return world


@story
def records_that_expire_after_a_reset_to_a_time() -> World:
    """Of a shard that was at the tip before: its row says from when on it is unread."""
    world = with_records(2)
    epoch = begin(world)
    for _ in range(3):
        world.work(epoch, 2)
        world.advance(3)
        world.put(world.open_shards[0])
    world.work(epoch, 2)
    epoch.draining = True
    world.work(epoch)
    world.advance(10_000)
    resets(world, to=world.time - 5)
    world.overtake(1)
    return world


@story
def a_reset_after_one_that_died() -> World:
    """It has another id and another target: it completes the plan that is named, and makes its own from there."""
    world = resharded()
    command = world.reset("latest", "one")
    until(world, command, "move")
    world.crash(command)
    world.advance(40)
    resets(world, name="two")
    return world


@story
def a_reset_whose_id_comes_again() -> World:
    """Between two batches: it moves nothing."""
    world = resharded()
    resets(world)
    heir = begin(world)
    world.work(heir, 4)
    heir.draining = True
    world.work(heir)
    world.advance(2)
    resets(world, to="latest")
    return world
