"""Telling schedules: the shortest ones known in which a rule of the protocol is what saves the records.

The machine finds most of them by chance; here they are on purpose, so that each mutant is caught within milliseconds and every time. A story only
drives the world; the ledger judges.
"""

from __future__ import annotations

from collections.abc import Callable

from simulation.epochs import Orders, SimulatedEpoch
from simulation.habits import Habits
from simulation.spark import Attempt
from simulation.turnstile import Process
from simulation.world import World

Story = Callable[[], World]
Entry = tuple[SimulatedEpoch, Process, Attempt | None]
STORIES: dict[str, Story] = {}
TURNS = 300


def story(tell: Story) -> Story:
    STORIES[tell.__name__] = tell
    return tell


def begin(world: World, lease: float = 12.0) -> SimulatedEpoch:
    """An epoch that has the lease and has begun."""
    epoch = world.start(Orders(lease))
    world.settle(epoch)
    reach(world, epoch, "next batch")
    return epoch


def inherit(world: World, lease: float = 12.0) -> SimulatedEpoch:
    """An epoch that watched the lease and took it over."""
    epoch = world.start(Orders(lease))
    world.settle(epoch)
    world.advance(40)
    return epoch


def reach(world: World, epoch: SimulatedEpoch, *calls: str) -> Entry:
    """Runs an epoch by turns until a process of it stands before one of these calls."""
    for _ in range(TURNS):
        turn = [entry for entry in world.runnable(epoch) if entry[2] is None or not entry[2].lost]
        if not turn:
            world.until_it_looks(epoch)
        for entry in turn:
            if not entry[1].at.startswith(calls) and world.ready(entry[1], entry[2]):
                world.step(*entry)
            if entry[1].at.startswith(calls) and not entry[1].done:
                return entry
    raise AssertionError(f"epoch {epoch.number} never comes to {calls}: {[p.at for _, p, _ in world.processes()]}")


def beside(world: World, epoch: SimulatedEpoch, process: Process) -> Process:
    """The other task of a batch of two; the first has bound, this one has not."""
    (other,) = (p for owner, p, attempt in world.processes() if owner is epoch and attempt is not None and p is not process)
    return other


def lost(world: World, entry: Entry) -> Process:
    """The executor of a task is cut off."""
    epoch, process, attempt = entry
    assert attempt is not None
    world.lose_attempt(epoch, attempt)
    return process


def go(world: World, process: Process, calls: int) -> None:
    """One process makes some calls, as far as it can."""
    for _ in range(calls):
        if found := [entry for entry in world.runnable() if entry[1] is process]:
            world.step(*found[0])


def with_records(records: int = 1, shards: int = 1, habits: Habits | None = None) -> World:
    world = World(shards, habits)
    for shard in world.open_shards:
        world.put(shard, records)
    return world
