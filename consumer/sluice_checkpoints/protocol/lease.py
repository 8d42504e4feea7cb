"""Takes a lease: watches it for the whole duration that its holder promised, then takes it (docs/protocol.md, "An epoch").

The counter is watched on the local monotonic clock; no wall clocks of two machines are ever compared. The same rule serves the consumer row and
a migrator's claim.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import LeaseHeld, ProtocolViolation, Refused, ServiceUnavailable, SluiceError
from sluice_checkpoints.protocol import owners
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.rows import ACTIVE, RESETTING, ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch

# A holder is silent by its own clock one lease after its last beat. Clocks run at the same rate within 1 %, and it looks at its own 40 times a lease.
MARGIN = 1.05
LOOK_SECONDS = 0.5  # between two looks of a driver that stands by: a read of one row


NEW, RELEASED, EXPIRED, FORCED = "new", "released", "expired", "forced"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What of a lease row is watched. `holder` is for people: the host and process that took the lease."""

    generation: int
    counter: int
    lease_millis: int
    released: bool
    holder: str | None = None


@dataclass(frozen=True)
class Watcher:
    """Watches a heartbeat in the time of this process.

    Attributes:
        clock, sleep: monotonic seconds, and a pause.
        notify: called once with the seconds that the wait will last, if there is one.
        look_seconds: the longest pause between two looks; by default a twentieth of the promise.
        ready: returns once a lease can be worked with, or raises. A lease that has moved by then is not taken.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    notify: Callable[[float], None] = lambda _seconds: None
    look_seconds: float = float("inf")
    ready: Callable[[], None] = lambda: None

    def wait_out(self, read: Callable[[], Heartbeat]) -> Heartbeat:
        """Returns the heartbeat once it may be taken: released, or unmoved for all of the promise.

        Raises:
            LeaseHeld: it moved; the holder lives.
        """
        seen = read()
        if seen.released or not seen.lease_millis:
            return seen
        promise = seen.lease_millis / 1000 * MARGIN
        start = self.clock()
        self.notify(promise)
        while (left := start + promise - self.clock()) > 0:
            self.sleep(min(left, max(0.1, promise / 20), self.look_seconds))
            now = read()
            if (now.generation, now.counter) != (seen.generation, seen.counter):
                who = now.holder or "another process"
                raise LeaseHeld(f"{who} holds the lease and is alive: its heartbeats continue (generation {now.generation}, counter {now.counter})")
            if now.released:
                return now
        return seen


@dataclass(frozen=True, slots=True)
class TakenLease:
    """A lease that is ours.

    Attributes:
        row: the row as taken.
        sent: the watcher's clock before the take was sent: the first heartbeat of this epoch. Of a standby, the last one before its driver has it.
        wait_out_millis: for how long everybody before us may still be working (forced takes only).
        how: what became of the lease before: there was none (`new`), it was `released`, it `expired` while it was watched, or it was `forced`.
    """

    row: ConsumerRow
    sent: float
    wait_out_millis: int = 0
    how: str = NEW

    @property
    def epoch(self) -> Epoch:
        """The epoch that this take began."""
        return Epoch(self.row.generation, self.row.token)


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """What the taker wants: its promise in milliseconds, its name and the time for people, and whose driver it is.

    Attributes:
        owner: None: it works for whatever owner the row names, as a person's program does who named the table.
        hands_over: `owner` is to be the owner, whoever was.
    """

    lease_millis: int
    holder: str
    at: str
    force: bool = False
    owner: Owner | None = None
    hands_over: bool = False


def _read(store: CheckpointStore, claim: LeaseRequest) -> ConsumerRow:
    row = store.consumer()
    if row is None:
        raise ProtocolViolation(f"table {store.table.name} has no consumer row: it was not bootstrapped or migrated")
    check_state(store.table.name, row)
    if claim.owner is not None and not claim.hands_over:
        owners.check(store.table.name, row, claim.owner)
    return row


def check_state(table: str, row: ConsumerRow) -> None:
    """Makes sure that a driver may work on the table. While positions are being moved it may: it completes that first.

    Raises:
        Refused: it was exported to another system.
    """
    if row.state not in {ACTIVE, RESETTING}:
        raise Refused(
            f"table {table} is {row.state}: no driver starts on it again. Migrate into a new table: "
            "sluice migrate --source TABLE --stream STREAM --target NEW --region REGION"
        )


def take_over(store: CheckpointStore, claim: LeaseRequest, watcher: Watcher) -> TakenLease:
    """Takes the consumer's lease.

    Raises:
        LeaseHeld: the holder beats, or another taker was faster.
        Refused: the table was exported to another system, or belongs to another owner (`owners.check`).
    """

    def beat_of() -> Heartbeat:
        row = _read(store, claim)
        return Heartbeat(row.generation, row.counter, row.lease_millis, row.released, row.holder)

    seen = _read(store, claim)
    wait_out, how = 0, FORCED
    if claim.force and not seen.released:
        wait_out = max(claim.lease_millis, seen.lease_millis)
    else:
        beat = watcher.wait_out(beat_of)
        how = RELEASED if beat.released else EXPIRED if beat.lease_millis else NEW
        seen = replace(seen, generation=beat.generation, counter=beat.counter)
    watcher.ready()
    wanted = replace(
        _named(seen, claim),
        token=secrets.token_hex(16),
        lease_millis=wait_out or claim.lease_millis,
        holder=claim.holder,
        updated_at=claim.at,
    )
    sent = watcher.clock()
    taken = store.take(seen, wanted)
    if taken is None:
        raise LeaseHeld("another epoch took the lease at the same moment")
    return TakenLease(taken, sent, wait_out, how)


def stand_by(
    store: CheckpointStore, claim: Callable[[], LeaseRequest], watcher: Watcher, notify: Callable[[SluiceError], None] = lambda _error: None
) -> TakenLease:
    """Takes the consumer's lease, however long its holder lives (docs/protocol.md, "A driver stands by").

    A lease that is held, and a table that does not answer, are no states to work in: the lease is watched again, from a new read.

    Args:
        store: the table.
        claim: what is asked for, made for each try: a standby may wait for days.
        watcher: its `sleep` ends the wait by raising.
        notify: called with each reason to watch again.

    Raises:
        Refused: the table was exported to another system, or belongs to another owner.
    """
    while True:
        try:
            return take_over(store, replace(claim(), force=False), watcher)
        except (LeaseHeld, ServiceUnavailable) as error:
            notify(error)
            watcher.sleep(min(LOOK_SECONDS, watcher.look_seconds))


def _named(seen: ConsumerRow, claim: LeaseRequest) -> ConsumerRow:
    if claim.owner is None:
        return seen
    return claim.owner.given(seen) if claim.hands_over else claim.owner.taking(seen)


def hand_over(store: CheckpointStore, claim: LeaseRequest, watcher: Watcher) -> ConsumerRow:
    """Gives the table to the owner of `claim`: takes the lease as a driver does, and releases it. The row as it is then.

    Raises:
        LeaseHeld: a driver works on it: stop that one first.
        Refused: the table was exported to another system.
    """
    taken = take_over(store, replace(claim, hands_over=True), watcher)
    with suppress(SluiceError):  # the table is handed over; a lease that is not released runs out
        store.release(taken.epoch)
    return taken.row
