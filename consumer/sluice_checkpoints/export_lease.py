"""Holding the consumer's lease while its positions are exported: taken as a driver takes it, beaten, and given back on every orderly exit.

No shard is fenced. A driver that was thought dead can commit nothing any more, for a commit names its generation; and what it may still bind belongs
to the open batch, which is exported from its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sluice_checkpoints.errors import LeaseHeld, SluiceError
from sluice_checkpoints.export_world import World
from sluice_checkpoints.lease import Claim, Taken, Watcher, take_over

BEATS_A_LEASE = 3
LOST = "another life took the consumer's lease; nothing more is exported"


class Held:
    """A lease that is ours, with its heartbeat. Single-threaded: `alive` is called between any two calls that take time."""

    def __init__(self, taken: Taken, world: World) -> None:
        self.row, self.life = taken.row, taken.life
        self.exported = False
        self._world, self._beaten = world, taken.sent
        self._interval = taken.row.lease_millis / 1000 / BEATS_A_LEASE

    def alive(self) -> None:
        """Beats when a third of the lease has passed since the last time.

        Raises:
            LeaseHeld: the lease is another's.
        """
        now = self._world.clock()
        if now - self._beaten < self._interval:
            return
        if not self._world.store.beat(self.life):
            raise LeaseHeld(LOST)
        self._beaten = now

    def pause(self, until: float) -> None:
        """Waits until the clock shows `until` seconds, beating."""
        while (left := until - self._world.clock()) > 0:
            self._world.sleep(min(left, self._interval))
            self.alive()

    def finish(self, to: str) -> None:
        """The last write: nobody takes this lease again.

        Raises:
            LeaseHeld: it is another's already.
        """
        if not self._world.store.export(self.life, to):
            raise LeaseHeld(LOST)
        self.exported = True


@contextmanager
def holding(world: World, lease_millis: int, at: str) -> Iterator[Held]:
    """Takes the lease; releases it in the end unless the table was exported. `at` is the time, for people.

    Raises:
        LeaseHeld: the consumer runs: suspend it, or wait until it has stopped.
    """
    watcher = Watcher(world.clock, world.sleep, lambda seconds: world.progress.waiting(seconds, "the consumer's lease runs out"))
    held = Held(take_over(world.store, Claim(lease_millis, world.holder, at), watcher), world)
    try:
        yield held
    finally:
        if not held.exported:
            with suppress(SluiceError):  # what ended the block is what counts; an unreleased lease runs out
                world.store.release(held.life)
