"""Mutants of a driver that stands by: what it may read, when it takes, and what survives that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from simulation.mutant import Patch, mutant, without_condition

from sluice_checkpoints.errors import LeaseHeld, ServiceUnavailable
from sluice_checkpoints.protocol import lease
from sluice_checkpoints.protocol.lease import TakenLease, Watcher
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_consumer.batches import bootstrap, planner
from sluice_consumer.batches import consumer as epoch
from sluice_consumer.process import standby

RULE = "A driver stands by: "
Way = Callable[..., TakenLease]


@mutant(
    "rows that a standby read survive its take",
    RULE + "nothing that was read before survives the take",
    stories="a_standby_whose_table_is_rewritten_meanwhile",
)
def early_view(patch: Patch) -> None:
    """A view is warmed up while it waits (KAFKA-8187: the old checkpoint was written back when the lock came)."""
    real, early = lease.stand_by, dict[int, dict[str, ShardRow]]()
    begin = epoch.Consumer.begin

    def stand_by(store: CheckpointStore, *args: Any) -> TakenLease:
        rows = {row["id"].removeprefix("shard/"): ShardRow.from_item(row) for row in _rows(store) if row["id"].startswith("shard/")}
        taken = real(store, *args)
        early[taken.epoch.generation] = rows
        return taken

    def warm(self: epoch.Consumer, *progress: Any) -> None:
        rows = early.get(self.epoch.generation)
        if rows is None:
            begin(self, *progress)
            return
        consumer = self.store.consumer()
        assert consumer is not None
        self.row = bootstrap.finish(self.store, consumer, self.epoch)
        for shard in self.store.shards():
            self.store.fence(self.epoch, shard)
        self.view = planner.TableView(rows, consumer.committed, frozenset())
        self.audit()

    patch.setattr(lease, "stand_by", stand_by)
    patch.setattr(epoch.Consumer, "begin", warm)


def _rows(store: CheckpointStore) -> list[Any]:
    """All rows, by a way that the turnstile does not see: what is read is not the point here, but that it is kept."""
    return list(store.table._table.scan())  # type: ignore[attr-defined]  # the client's


@mutant(
    "a standby reads the shards before it has the lease",
    RULE + "while it stands by it reads the consumer row and nothing else",
    stories="a_standby_takes_a_released_lease",
)
def reads_ahead(patch: Patch) -> None:
    """It costs what an epoch's begin costs, and whoever has it will want to use it."""
    real = lease.stand_by

    def stand_by(store: CheckpointStore, *args: Any) -> TakenLease:
        store.shards()
        return real(store, *args)

    patch.setattr(lease, "stand_by", stand_by)


@mutant(
    "a standby fences the shards before it has the lease",
    RULE + "it writes nothing but the take",
    stories="a_standby_beside_a_driver_that_works",
)
def fences_ahead(patch: Patch) -> None:
    """It saves the time of the fences, and ends the driver that works."""
    real = lease.stand_by

    def stand_by(store: CheckpointStore, *args: Any) -> TakenLease:
        row = store.consumer()
        assert row is not None
        for shard in store.shards():
            store.fence(Epoch(row.generation + 1, ""), shard)
        return real(store, *args)

    patch.setattr(lease, "stand_by", stand_by)


def _taking(patch: Patch, takes: Callable[[Exception, float, Watcher], bool]) -> None:
    """A standby that takes the lease although it was not found released or expired."""

    def stand_by(store: CheckpointStore, claim: Any, watcher: Watcher, notify: Any = None) -> TakenLease:  # noqa: ARG001
        began = watcher.clock()
        while True:
            try:
                return lease.take_over(store, claim(), watcher)
            except (LeaseHeld, ServiceUnavailable) as error:
                if takes(error, began, watcher) and (row := _consumer(store)) is not None:
                    taken = store.take(row, replace(row, token=f"{row.generation}", lease_millis=claim().lease_millis))
                    if taken is not None:
                        return TakenLease(taken, watcher.clock())
                watcher.sleep(0.5)

    patch.setattr(lease, "stand_by", stand_by)


def _consumer(store: CheckpointStore) -> Any:
    try:
        return store.consumer()
    except ServiceUnavailable:
        return None


@mutant(
    "a lease that is held is no reason to wait",
    RULE + "only a lease is a state to work in",
    stories="a_standby_beside_a_driver_that_works",
)
def held(patch: Patch) -> None:
    """It goes on although it did not get the lock (KAFKA-8187: RUNNING despite a LockException)."""
    _taking(patch, lambda error, _began, _watcher: isinstance(error, LeaseHeld))


@mutant(
    "a standby counts the time before the heartbeat moved",
    RULE + "each time that the heartbeat has moved, it is watched again",
    stories="a_standby_beside_a_driver_that_works",
)
def impatient(patch: Patch) -> None:
    """It has watched for a whole promise in all, in pieces."""
    _taking(patch, lambda error, began, watcher: isinstance(error, LeaseHeld) and watcher.clock() - began > 12 * lease.MARGIN)


@mutant(
    "no answer of the table is a silent holder",
    RULE + "a look without an answer says nothing",
    stories="a_standby_that_cannot_reach_the_table",
)
def deaf(patch: Patch) -> None:
    """A standby that was cut off for a promise takes the lease as soon as it is not."""
    since: list[float] = []

    def takes(error: Exception, _began: float, watcher: Watcher) -> bool:
        if isinstance(error, ServiceUnavailable):
            since[:] = since or [watcher.clock()]
        return bool(since) and watcher.clock() - since[0] > 12 * lease.MARGIN

    _taking(patch, takes)


@mutant(
    "a take does not ask whether the lease has moved since",
    "An epoch: on the condition that it still has not moved",
    stories="a_standby_that_stood_still_before_its_take",
)
def stale_take(patch: Patch) -> None:
    """A standby that stood still takes a lease that is another's by now."""
    without_condition(patch, "take", lambda condition: getattr(condition, "path", None) in {("generation",), ("counter",), ("released",)})


@mutant(
    "a standby does not ask again whose the table is",
    RULE + "and every look asks what a take asks",
    stories="a_standby_and_a_handover",
)
def whose_once(patch: Patch) -> None:
    """Its supervisor asked when it started."""
    real = lease.stand_by
    patch.setattr(lease, "stand_by", lambda store, claim, *args: real(store, lambda: replace(claim(), owner=None), *args))


@mutant(
    "the checks of a standby's start are not made again",
    RULE + "every check of the start is made again under the lease",
    harmless="in this world the begin of an epoch asks for the stream, too, and tables are not restored; test_standby.py has such a table",
)
def checked_once(patch: Patch) -> None:
    """They passed, days ago."""
    patch.setattr(standby, "confirm", lambda *_: None)
