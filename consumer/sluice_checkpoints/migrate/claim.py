"""Holds the claim on a target: takes it by the lease rule, sends heartbeats while the migrator works or waits, releases it on every orderly exit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from sluice_checkpoints.errors import LeaseHeld, Refused, SluiceError
from sluice_checkpoints.migrate.ports import MigrationPorts
from sluice_checkpoints.migrate.store import CLAIMED, COMPLETE, MigrationClaim, MigrationStore
from sluice_checkpoints.protocol.lease import Heartbeat, Watcher
from sluice_checkpoints.protocol.lease_keeper import LeaseKeeper


class HeldClaim(LeaseKeeper):
    """A claim that is ours."""

    def __init__(self, store: MigrationStore, claim: MigrationClaim, ports: MigrationPorts, sent: float) -> None:
        super().__init__(ports, claim.row.lease_millis, sent)
        self.store, self.claim = store, claim

    def beat(self) -> None:
        self.store.beat(self.claim)


@contextmanager
def holding(store: MigrationStore, wanted: MigrationClaim, ports: MigrationPorts) -> Iterator[HeldClaim]:
    """Takes the claim and releases it in the end, however that comes about.

    `wanted` says source, format, stream, T0, promise and token; T0 is that of the first claim on this table, for it is decided once.

    Raises:
        LeaseHeld: another migrator is at work here.
        Refused: the table is claimed for another migration.
    """
    held = _take(store, wanted, ports)
    try:
        yield held
    finally:
        with suppress(SluiceError):  # what ended the block is what counts; an unreleased claim runs out
            store.release(held.claim)


def _take(store: MigrationStore, wanted: MigrationClaim, ports: MigrationPorts) -> HeldClaim:
    seen = store.claim()
    if seen is None:
        taken, sent = replace(wanted, row=replace(wanted.row, generation=1, counter=1)), ports.clock()
        won = store.put_claim(taken)
    else:
        seen = _waited_out(store, seen, wanted, ports)
        row = replace(wanted.row, generation=seen.row.generation + 1, counter=seen.row.counter + 1, now_millis=seen.row.now_millis)
        taken, sent = replace(wanted, row=row), ports.clock()
        won = store.take_claim(seen, taken)
    if not won:
        raise LeaseHeld("another migrator claimed this table at the same moment; run this again when it has ended")
    return HeldClaim(store, taken, ports, sent)


def _waited_out(store: MigrationStore, seen: MigrationClaim, wanted: MigrationClaim, ports: MigrationPorts) -> MigrationClaim:
    if not seen.same_as(wanted):
        raise Refused(f"table {store.table.name} is claimed by {seen}; give this migration a target of its own")
    if seen.row.state == COMPLETE:
        raise LeaseHeld("another migrator completed this table at the same moment; run this again to see its result")

    def read() -> Heartbeat:
        row = (store.claim() or seen).row
        return Heartbeat(row.generation, row.counter, row.lease_millis, row.released)

    watcher = Watcher(ports.clock, ports.sleep, lambda s: ports.progress.waiting(s, "another migrator's claim runs out"))
    beat = watcher.wait_out(read)
    return replace(seen, row=replace(seen.row, generation=beat.generation, counter=beat.counter, state=CLAIMED))
