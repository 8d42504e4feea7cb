"""Rules of pools taken out one at a time, each with a story that has to notice it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from pools.programs import PoolDriver
from pools.world import World

from sluice_operator.observe import parse, seats
from sluice_operator.plan import seats as planned
from sluice_operator.state.seats import Seat, Seating

Patch = pytest.MonkeyPatch
Story = Callable[[World], None]


@dataclass(frozen=True)
class PoolMutant:
    """`broken`: the invariant that the story breaks then."""

    name: str
    broken: str
    apply: Callable[[Patch], None]
    story: Story


def on(world: World, steps: int) -> World:
    for _ in range(steps):
        world.pass_all()
        world.tick()
    return world


def pooled(world: World | None = None) -> World:
    """All consumers work in one pool."""
    world = world or World()
    for one in world.consumers.values():
        one.pool = "small"
    return on(world, 8)


def moves_out(world: World) -> None:
    """Out of the pool, and to another one."""
    pooled(world).consumers["orders"].pool = None
    world.consumers["carts"].pool = "large"
    world.calm(40)


def fails_unseen(world: World) -> None:
    """A run ends before any operator has seen that it began."""
    one = pooled(world).consumers["orders"]
    one.edits += 1
    for _ in range(20):
        world.pass_all()
        world.tick()
        for program in world.running.values():
            if isinstance(program, PoolDriver) and one.uid in program.runs and program.runs[one.uid].attempt == 2 and one.status.driver.uid is None:
                program.fails.add(one.uid)
                world.tick()
                return world.calm(60)
    raise AssertionError("the second attempt was not begun")


def forges(world: World) -> None:
    """A pod that only sounds like a pool's."""
    pooled(world).forged()
    world.calm(40)


def copies(world: World) -> None:
    """A copy of a pool's pod, with everything."""
    pooled(world).copied_whole()
    for one in world.consumers.values():
        world.act(one, world.decide(one))
    world.calm(40)


def without_a_pool(world: World) -> None:
    """The pool is suspended."""
    pooled(world).pools["small"].suspend = True
    world.calm(40)


def strikes_late(world: World) -> None:
    """An operator that was paused writes a seat that has ended and whose annotations are gone."""
    for one in world.consumers.values():
        one.pool = "small"
    pool = on(world, 1).pools["small"]
    world.act(pool, world.decide(pool))
    world.pause(world.consumers["orders"])
    on(world, 4)
    world.consumers["orders"].pool = None
    on(world, 12)
    world.strike()
    world.tick()
    world.calm(40)


def forgets_who_is_out(world: World) -> None:
    """A member that was put out is suspended with its pool; then nobody knows any more that it is out."""
    orders = pooled(world).consumers["orders"]
    world.put_out(orders)
    world.calm(40)
    world.pools["small"].suspend = True
    world.calm(40)
    world.pools["small"].suspend = False
    world.calm(40)
    world.forgotten(orders)
    world.calm(40)


def _leave_is_over(patch: Patch) -> None:
    patch.setattr(Seat, "is_over", lambda self, _host: self.leave_by is not None)


def _exit_is_over(patch: Patch) -> None:
    patch.setattr(Seat, "is_over", lambda self, host: self.end_in(host) is not None)


def _stays_where_it_is(patch: Patch) -> None:
    patch.setattr(Seating, "fits", lambda _self, _driver: True)


def _any_kind(patch: Patch) -> None:
    patch.setattr(parse, "controller", _unqualified(parse.controller))


def _unqualified(real: Callable[[parse.Json], parse.Json]) -> Callable[[parse.Json], parse.Json]:
    def controller(meta: parse.Json) -> parse.Json:
        found = real(meta)
        return {**found, "owner_kind": parse.POOL_KIND} if found["owner_kind"].startswith("KinesisConsumerPool") else found

    return controller


def _any_pod(patch: Patch) -> None:
    real = seats._seat

    def believed(notes: parse.Json, key: str, host: parse.Pod) -> Seat | None:
        written = seats._document(notes[seats.SEAT + key])
        notes = {**notes, seats.SEAT + key: json.dumps({**written, "pod": host.uid})} if written else notes
        return real(notes, key, host)

    patch.setattr(seats, "_seat", believed)


def _no_wait(patch: Patch) -> None:
    patch.setattr(planned, "_await_pool", lambda _place: lambda _view: None)


def _forgets(patch: Patch) -> None:
    patch.setattr(PoolDriver, "forgets", True)
    patch.setattr(PoolDriver, "__init__", _forgetful(PoolDriver.__init__))


def _forgetful(real: Callable[..., None]) -> Callable[..., None]:
    def init(self: PoolDriver, uid: str) -> None:
        real(self, uid, forgets=True)

    return init


MUTANTS = (
    PoolMutant("a seat that shall leave counts as gone", "one_driver", _leave_is_over, moves_out),
    PoolMutant("a seat that has ended counts as gone before that was seen", "spec_reached", _exit_is_over, fails_unseen),
    PoolMutant("a kind of another group is a pool", "tenants", _any_kind, forges),
    PoolMutant("a copied seat counts", "tenants", _any_pod, copies),
    PoolMutant("a member does not wait for its pool", "spec_reached", _no_wait, without_a_pool),
    PoolMutant("a driver that is not where it belongs stays there", "spec_reached", _stays_where_it_is, forgets_who_is_out),
    PoolMutant("a pool's driver begins an attempt again", "one_driver", _forgets, strikes_late),
)
