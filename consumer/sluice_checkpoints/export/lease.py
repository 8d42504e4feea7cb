"""Holds the consumer's lease while its positions are exported: takes it as a driver does, sends heartbeats, and releases it on every orderly exit.

No shard is fenced. A driver that was thought dead can commit nothing any more, because a commit names its generation. What it may still bind belongs
to the open batch, which is exported from its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sluice_checkpoints.errors import LeaseHeld, SluiceError
from sluice_checkpoints.export.ports import ExportPorts
from sluice_checkpoints.protocol.lease import LeaseRequest, TakenLease, Watcher, take_over
from sluice_checkpoints.protocol.lease_keeper import LeaseKeeper

LOST = "another epoch took the consumer's lease; nothing more is exported"


class HeldLease(LeaseKeeper):
    """A lease that is ours, and whether the table was exported under it."""

    def __init__(self, taken: TakenLease, ports: ExportPorts) -> None:
        super().__init__(ports, taken.row.lease_millis, taken.sent)
        self.row, self.epoch = taken.row, taken.epoch
        self.exported = False
        self._store = ports.store

    def beat(self) -> None:
        if not self._store.beat(self.epoch):
            raise LeaseHeld(LOST)

    def finish(self, to: str) -> None:
        """The last write: this lease cannot be taken again.

        Raises:
            LeaseHeld: it is another's already.
        """
        if not self._store.export(self.epoch, to):
            raise LeaseHeld(LOST)
        self.exported = True


@contextmanager
def holding(ports: ExportPorts, lease_millis: int, at: str) -> Iterator[HeldLease]:
    """Takes the lease; releases it in the end unless the table was exported. `at` is the time, for people.

    Raises:
        LeaseHeld: the consumer runs: suspend it, or wait until it has stopped.
    """
    watcher = Watcher(ports.clock, ports.sleep, lambda seconds: ports.progress.waiting(seconds, "the consumer's lease runs out"))
    held = HeldLease(take_over(ports.store, LeaseRequest(lease_millis, ports.holder, at), watcher), ports)
    try:
        yield held
    finally:
        if not held.exported:
            with suppress(SluiceError):  # what ended the block is what counts; an unreleased lease runs out
                ports.store.release(held.epoch)
