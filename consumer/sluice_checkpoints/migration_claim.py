"""Holding the claim on a target: taken by the lease rule, kept by beating while the migrator works or waits, released on every orderly exit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from sluice_checkpoints.errors import LeaseHeld, Refused, SluiceError
from sluice_checkpoints.lease import Heartbeat, Watcher
from sluice_checkpoints.migration_store import CLAIMED, COMPLETE, Claim, MigrationStore
from sluice_checkpoints.migration_world import World

BEATS_A_LEASE = 3


class Held:
    """A claim that is ours, with its heartbeat. Single-threaded: `alive` is called between any two calls that take time."""

    def __init__(self, store: MigrationStore, claim: Claim, world: World) -> None:
        self.store, self.claim, self._world = store, claim, world
        self._beaten = world.clock()

    @property
    def _interval(self) -> float:
        return self.claim.row.lease_millis / 1000 / BEATS_A_LEASE

    def alive(self) -> None:
        """Beats when a third of the lease has passed since the last time.

        Raises:
            LeaseHeld: another migrator took the claim.
        """
        if self._world.clock() - self._beaten >= self._interval:
            now = self._world.clock()
            self.store.beat(self.claim)
            self._beaten = now

    def pause(self, until: float) -> None:
        """Waits until the clock shows `until` seconds, beating."""
        while (left := until - self._world.clock()) > 0:
            self._world.sleep(min(left, self._interval))
            self.alive()


@contextmanager
def holding(store: MigrationStore, wanted: Claim, world: World) -> Iterator[Held]:
    """Takes the claim and releases it in the end, however that comes about.

    `wanted` says source, format, stream, T0, promise and token; T0 is that of the first claim on this table, for it is decided once.

    Raises:
        LeaseHeld: another migrator is at work here.
        Refused: the table is claimed for another migration.
    """
    held = Held(store, _take(store, wanted, world), world)
    try:
        yield held
    finally:
        with suppress(SluiceError):  # what ended the block is what counts; an unreleased claim runs out
            store.release(held.claim)


def _take(store: MigrationStore, wanted: Claim, world: World) -> Claim:
    seen = store.claim()
    if seen is None:
        taken = replace(wanted, row=replace(wanted.row, generation=1, counter=1))
        won = store.put_claim(taken)
    else:
        seen = _waited_out(store, seen, wanted, world)
        row = replace(wanted.row, generation=seen.row.generation + 1, counter=seen.row.counter + 1, now_millis=seen.row.now_millis)
        taken = replace(wanted, row=row)
        won = store.take_claim(seen, taken)
    if not won:
        raise LeaseHeld("another migrator claimed this table at the same moment")
    return taken


def _waited_out(store: MigrationStore, seen: Claim, wanted: Claim, world: World) -> Claim:
    if not seen.same_as(wanted):
        raise Refused(f"table {store.table.name} is claimed by {seen}; give this migration a target of its own")
    if seen.row.state == COMPLETE:
        raise LeaseHeld("another migrator completed this table at the same moment")

    def read() -> Heartbeat:
        row = (store.claim() or seen).row
        return Heartbeat(row.generation, row.counter, row.lease_millis, row.released)

    watcher = Watcher(world.clock, world.sleep, lambda s: world.progress.waiting(s, "another migrator's claim runs out"))
    beat = watcher.wait_out(read)
    return replace(seen, row=replace(seen.row, generation=beat.generation, counter=beat.counter, state=CLAIMED))
