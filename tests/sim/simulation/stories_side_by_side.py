"""Stories of writes that are made side by side: fences, rows of the first plan, closes (docs/protocol.md, "Writes side by side")."""

from __future__ import annotations

from simulation.epochs import Orders, SimulatedEpoch
from simulation.habits import READ, SWALLOW, Habits
from simulation.ports import UNAVAILABLE
from simulation.story import begin, go, inherit, lost, reach, story, with_records
from simulation.turnstile import Process
from simulation.world import World

LAST_FIRST = (5, 4, 3, 2, 1, 0)


def before_their_binds(world: World, epoch: SimulatedEpoch) -> dict[str, Process]:
    """Runs an epoch until each of its tasks stands before its bind. By shard."""
    found: dict[str, Process] = {}
    while len(found) < len(world.open_shards):
        process = reach(world, epoch, *(f"bind shard/{shard}" for shard in world.open_shards if shard not in found))[1]
        found[process.at.removeprefix("bind shard/")] = process
        world.frozen[process] = world.time
    world.frozen.clear()
    return found


@story
def a_bind_before_the_last_fence() -> World:
    """A shard is bound; all rows but one are fenced when a task of the former epoch binds that one, too."""
    world = with_records(shards=3)
    former = begin(world)
    late = before_their_binds(world, former)
    go(world, late[world.open_shards[0]], 1)
    last = world.open_shards[-1]
    world.crash(former)
    usurper = world.start(Orders(12, force=True))
    world.settle(usurper)
    reach(world, usurper, f"fence shard/{last}")
    go(world, late[last], 1)
    world.work(usurper)
    world.advance(20)
    world.work(usurper)
    return world


@story
def a_crash_amid_the_fences() -> World:
    """The last rows are fenced, the first is not; its task binds, and those of the others cannot; the next epoch finds one range of the batch."""
    world = with_records(shards=3, habits=Habits(picks=LAST_FIRST))
    former = begin(world)
    late = before_their_binds(world, former)
    first = world.open_shards[0]
    world.crash(former)
    usurper = world.start(Orders(12, force=True))
    world.settle(usurper)
    reach(world, usurper, f"fence shard/{first}")
    world.crash(usurper)
    for process in late.values():
        go(world, process, 2)
    world.work(inherit(world), 2)
    return world


@story
def a_crash_before_the_last_row_of_the_plan() -> World:
    """A consumer starts at LATEST, and dies when one shard has no row yet; it starts again."""
    world = with_records(2, shards=3)
    world.advance(5)
    epoch = world.start(Orders(start="LATEST"))
    world.settle(epoch)
    while sum(key.startswith("shard/") for key in world.table.rows) < len(world.open_shards) - 1:
        world.step(*reach(world, epoch, "put shard/"))
    reach(world, epoch, "put shard/")
    world.crash(epoch)
    heir = world.start(Orders(start="LATEST"))
    world.settle(heir)
    world.advance(40)
    world.work(heir, 2)
    return world


def cut_off(picks: tuple[int, ...] = (0,)) -> tuple[World, SimulatedEpoch, list[Process]]:
    """Two attempts are cut off before their binds, and `process` goes on without them. The next calls are the closes."""
    world = with_records(shards=2, habits=Habits(processes=(SWALLOW, READ), attempts=1, only_close=True, picks=picks))
    epoch = begin(world)
    world.work(epoch)
    for shard in world.open_shards:
        world.put(shard)
    late = [lost(world, reach(world, epoch, f"bind shard/{shard}")) for shard in world.open_shards]
    reach(world, epoch, "close")
    return world, epoch, late


@story
def binds_after_the_closes() -> World:
    """Both rows are closed when the attempts go on."""
    world, epoch, late = cut_off()
    reach(world, epoch, "commit")
    world.work(epoch)
    for process in late:
        go(world, process, 1)
    return world


@story
def a_close_without_an_answer_beside_another() -> World:
    """The last row is closed; the close of the first finds no service; the epoch ends, and the attempts go on."""
    world, epoch, late = cut_off(LAST_FIRST)
    first = world.open_shards[0]
    world.step(*reach(world, epoch, f"close shard/{first}"), UNAVAILABLE)
    world.work(epoch)
    for process in late:
        go(world, process, 1)
    if not epoch.working:
        world.work(inherit(world), 2)
    return world
