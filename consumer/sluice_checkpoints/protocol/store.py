"""The conditional writes of the protocol: one function a step, its condition in sight (docs/protocol.md).

Every function says who may win it. Losing is an answer where the caller continues (`None`, `False`, `Replay`), and an exception where it must stop.
Nothing here reads a clock or deletes a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sluice_checkpoints.errors import Fenced, ProtocolViolation
from sluice_checkpoints.protocol.batch_writes import BatchSteps, Epoch, Range, Replay, TaskAttempt
from sluice_checkpoints.protocol.folding import TableShards
from sluice_checkpoints.protocol.rows import (
    CONSUMER,
    EXPORTED,
    MIGRATION,
    SHARD_PREFIX,
    ConsumerRow,
    Item,
    MigrationRow,
    ShardRow,
)
from sluice_checkpoints.protocol.table import (
    NEW_ROW,
    Absent,
    Check,
    Condition,
    Equals,
    Path,
    Put,
    Update,
    chunks,
    equals,
)

__all__ = ["MEMBERS", "CheckpointStore", "Epoch", "Range", "Replay", "TaskAttempt"]

MEMBERS = 99  # rows beside the one check in a transaction
ADOPTED = 1_000_000  # generations that an adopted copy leaves free: epochs that its original had after the copy was made


class CheckpointStore(BatchSteps):
    """The protocol's steps on one table."""

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def consumer(self) -> ConsumerRow | None:
        """The consumer row."""
        item = self.table.get(CONSUMER)
        return ConsumerRow.from_item(item) if item else None

    def migration(self) -> MigrationRow | None:
        """The migration row."""
        item = self.table.get(MIGRATION)
        return MigrationRow.from_item(item) if item else None

    def contents(self) -> TableShards:
        """Every shard row, and the shards that were folded: a full scan, for take-over and people."""
        return TableShards.of(self.table.scan())

    def shards(self) -> dict[str, ShardRow]:
        """Every shard row by shard id (a full scan)."""
        return dict(self.contents().rows)

    def read(self, shard_ids: Iterable[str]) -> dict[str, ShardRow]:
        """These shards' rows.

        Raises:
            ProtocolViolation: one is missing; only rows of shards that are over are ever deleted.
        """
        ids = list(shard_ids)
        rows = self.existing(ids)
        if missing := [i for i in ids if i not in rows]:
            raise ProtocolViolation(f"no row for shards {missing} in {self.table.name}: Sluice deletes no row of a shard that is read")
        return rows

    def existing(self, shard_ids: Iterable[str]) -> dict[str, ShardRow]:
        """The rows of those of these shards that have one, in this order."""
        ids = list(shard_ids)
        items = self.table.batch_get([SHARD_PREFIX + i for i in ids])
        return {i: ShardRow.from_item(items[SHARD_PREFIX + i]) for i in ids if SHARD_PREFIX + i in items}

    # -- lease ---------------------------------------------------------------------------------------------------------------------

    def take(self, seen: ConsumerRow, wanted: ConsumerRow) -> ConsumerRow | None:
        """Takes the lease from the state `seen`; of `wanted` the token, the promise, the holder, the time and the owner are used.

        Condition: nothing moved since `seen`, its owner and state neither. A lost reply is recognised by the token.

        Returns:
            The row as taken, or None: somebody beat, took or exported in between.
        """
        taken = replace(
            wanted,
            generation=seen.generation + 1,
            counter=seen.counter + 1,
            released=False,
        )
        outcome = self.table.write(
            Update(
                CONSUMER,
                when=(*equals(generation=seen.generation, counter=seen.counter, state=seen.state), *_whose(seen)),
                put={
                    ("generation",): taken.generation,
                    ("counter",): taken.counter,
                    ("token",): taken.token,
                    ("leaseMillis",): taken.lease_millis,
                    **_known(holder=taken.holder, updatedAt=taken.updated_at, owner=taken.owner, cluster=taken.cluster),
                },
                remove=frozenset({("released",), *_dropped(seen, taken)}),
            )
        )
        mine = outcome.row is not None and outcome.row.get("token") == taken.token
        return taken if outcome.applied or mine else None

    def beat(self, epoch: Epoch, lease_millis: int | None = None, at: int | None = None) -> bool:
        """Moves the heartbeat counter. False: the lease is another's.

        Args:
            epoch: whose lease it is.
            lease_millis: a new promise.
            at: now, epoch milliseconds, for people.
        """
        put: dict[Path, object] = {} if lease_millis is None else {("leaseMillis",): lease_millis}
        put |= {} if at is None else {("lastBeat",): {"generation": epoch.generation, "at": at}}
        return self.table.write(Update(CONSUMER, _owned(epoch), put=put, add={"counter": 1})).applied

    def release(self, epoch: Epoch) -> bool:
        """Says that this epoch is over and silent, so that the next need not wait. False: the lease is another's."""
        return self.table.write(Update(CONSUMER, _owned(epoch), put={("released",): True})).applied

    def export(self, epoch: Epoch, to: str) -> bool:
        """The end of this table: its positions are in table `to` now, and the lease cannot be taken again (`lease.check_state`).

        Condition: the lease is this epoch's, and no reset is under way. Sent twice it says the same, so a lost reply does no harm.
        False: it was refused.
        """
        when: tuple[Condition, ...] = (*_owned(epoch), Absent(("reset",)))
        return self.table.write(Update(CONSUMER, when, put={("state",): EXPORTED, ("exportedTo",): to})).applied

    # -- which table this is -------------------------------------------------------------------------------------------------------

    def mark(self, seen: ConsumerRow, table_id: str) -> bool:
        """Says which DynamoDB table the consumer row is in. Condition: the same consumer, and no table is named yet. False: one is."""
        when = (Equals(("consumerId",), seen.consumer_id), Absent(("tableId",)))
        outcome = self.table.write(Update(CONSUMER, when, put={("tableId",): table_id}))
        return outcome.applied or (outcome.row or {}).get("tableId") == table_id

    def adopt(self, seen: ConsumerRow, wanted: ConsumerRow) -> bool:
        """Makes a copied table a consumer of its own: no sink has seen its id, and no generation of the original comes near its own.

        Of `wanted` the consumer id, the table's id and the owner are used.

        Condition: nothing moved since `seen`, whose table is another one. A lost reply is recognised by the new id. False: something moved.
        """
        named = _known(consumerId=wanted.consumer_id, tableId=wanted.table_id, owner=wanted.owner, cluster=wanted.cluster)
        put: dict[Path, str | int] = {**named, ("generation",): seen.generation + ADOPTED, ("counter",): seen.counter + 1}
        when = equals(consumerId=seen.consumer_id, tableId=seen.table_id, generation=seen.generation, counter=seen.counter)
        outcome = self.table.write(Update(CONSUMER, (*when, *_whose(seen)), put=put, remove=_dropped(seen, wanted)))
        return outcome.applied or (outcome.row or {}).get("consumerId") == wanted.consumer_id

    # -- rows ----------------------------------------------------------------------------------------------------------------------

    def create_consumer(self, row: ConsumerRow) -> bool:
        """Puts the consumer row of a fresh table. Condition: neither it nor a migration exists. False: one does."""
        check = Check(MIGRATION, (NEW_ROW,))
        return self.table.transact([check, Put(row.to_item(), (NEW_ROW,))]).applied

    def put_new(self, item: Item) -> bool:
        """Puts a row that is never changed afterwards. False: it exists."""
        return self.table.write(Put(item, (NEW_ROW,))).applied

    def finish_bootstrap(self, epoch: Epoch) -> None:
        """Says that every shard of the bootstrap plan has its row.

        Raises:
            Fenced: the lease is another's.
        """
        if not self.table.write(Update(CONSUMER, _owned(epoch), put={("bootstrapped",): True})).applied:
            raise Fenced("the lease was taken by another epoch during the bootstrap")

    def keep_retention(self, epoch: Epoch, millis: int) -> None:
        """Says under which retention what is unread may have expired. Sent twice it says the same.

        Condition: the lease is this epoch's.

        Raises:
            Fenced: the lease is another's.
        """
        if not self.table.write(Update(CONSUMER, _owned(epoch), put={("retention",): millis})).applied:
            raise Fenced(f"generation {epoch.generation} does not hold the lease any more: another epoch may know another retention")

    def create_shards(self, epoch: Epoch, committed: int, rows: Sequence[ShardRow]) -> None:
        """Puts rows of shards found later, each only if absent, while no batch after `committed` is committed.

        Raises:
            Fenced: another epoch, or the batch moved on (docs/protocol.md: a row created late would join a batch that was planned without it).
        """
        check = Check(CONSUMER, equals(generation=epoch.generation, committed=committed))
        for chunk in chunks(rows, MEMBERS):
            pending: list[ShardRow] = chunk
            while pending:
                result = self.table.transact([check, *(Put(row.to_item(), (NEW_ROW,)) for row in pending)])
                if result.applied:
                    break
                if 0 in result.refused:
                    raise Fenced(f"generation {epoch.generation} no longer writes, or batch {committed} is not the last committed")
                pending = [row for i, row in enumerate(pending, 1) if i not in result.refused]


def _owned(epoch: Epoch) -> tuple[Equals, ...]:
    return (Equals(("generation",), epoch.generation), Equals(("token",), epoch.token))


def _whose(seen: ConsumerRow) -> tuple[Condition, ...]:
    """That owner and cluster are still as they were seen."""
    values = {"owner": seen.owner, "cluster": seen.cluster}
    return tuple(Absent((name,)) if value is None else Equals((name,), value) for name, value in values.items())


def _dropped(seen: ConsumerRow, wanted: ConsumerRow) -> frozenset[Path]:
    pairs = {"owner": (seen.owner, wanted.owner), "cluster": (seen.cluster, wanted.cluster)}
    return frozenset((name,) for name, (old, new) in pairs.items() if old is not None and new is None)


def _known(**values: str | None) -> Mapping[Path, str]:
    return {(name,): value for name, value in values.items() if value is not None}
