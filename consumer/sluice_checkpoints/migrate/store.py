"""The conditional writes of a migrator: its claim on the target, the rows, and the end (docs/migration.md, steps 2 to 7).

One function a step, its condition in sight. A claim that is lost stops its migrator: every write names the generation and the token of the take, so
one that was paused and continues later changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sluice_checkpoints.errors import LeaseHeld, ProtocolViolation
from sluice_checkpoints.protocol.folding import TableShards
from sluice_checkpoints.protocol.row_kinds import OwnTable, kind_of
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION, ConsumerRow, Item, MigrationRow, ShardRow
from sluice_checkpoints.protocol.store import MEMBERS
from sluice_checkpoints.protocol.table import MAX_TRANSACTION_BYTES, NEW_ROW, AnyOf, Check, Condition, Equals, Put, Table, Update, equals, packed
from sluice_checkpoints.stream.model import StreamIdentity

CLAIMED, COPYING, COMPLETE = "CLAIMED", "COPYING", "COMPLETE"
LOST = "another migrator took over this table's claim; it continues from here"


@dataclass(frozen=True, slots=True)
class MigrationClaim:
    """The row `migration`, and the stream it is about: `stream_arn` and `stream_created` as in the consumer row.

    `choices` are the options that decide where shards start.
    """

    row: MigrationRow
    stream_arn: str
    stream_created: int
    choices: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def wanted(row: MigrationRow, stream: StreamIdentity, choices: Mapping[str, Any]) -> MigrationClaim:
        """A claim on behalf of this stream."""
        return MigrationClaim(row, stream.arn, stream.created_millis, choices)

    def chosen(self, option: str) -> frozenset[str]:
        """The values of an option that can be given more than once, such as `ignore-row`."""
        return frozenset(map(str, self.choices.get(option, ())))

    def same_as(self, other: MigrationClaim) -> bool:
        """Whether both are about one source and one stream."""
        return (self.row.source, self.stream_arn, self.stream_created) == (other.row.source, other.stream_arn, other.stream_created)

    def to_item(self) -> Item:
        """The stored form."""
        return self.row.to_item() | {"streamArn": self.stream_arn, "streamCreated": self.stream_created, "choices": dict(self.choices)}

    def __str__(self) -> str:
        return f"the migration of source {self.row.source} and stream {self.stream_arn} (created {self.stream_created})"

    @staticmethod
    def from_item(item: Mapping[str, Any]) -> MigrationClaim:
        """Reads the stored form."""
        return MigrationClaim(MigrationRow.from_item(item), item["streamArn"], item["streamCreated"], item["choices"])

    @property
    def mine(self) -> tuple[Condition, ...]:
        """The condition that this claim is still held."""
        return equals(generation=self.row.generation, token=self.row.token)


@dataclass(frozen=True, slots=True)
class Copy:
    """What a copy writes: the digest of the plan's rows, their number, and `Plan.risks`."""

    plan_digest: str
    rows: int
    risks: Mapping[str, int]


class MigrationStore:
    """A migrator's steps on its target."""

    def __init__(self, table: Table) -> None:
        self.table = OwnTable(table)

    def consumer(self) -> ConsumerRow | None:
        """The consumer row: once it is there, this table belongs to a consumer and nothing here is written any more."""
        item = self.table.get(CONSUMER)
        return ConsumerRow.from_item(item) if item else None

    def claim(self) -> MigrationClaim | None:
        """The claim as it is stored."""
        item = self.table.get(MIGRATION)
        return MigrationClaim.from_item(item) if item else None

    def contents(self) -> TableShards:
        """Every shard row, and the shards that were folded (a full scan)."""
        return TableShards.of(self.table.scan())

    def shards(self) -> dict[str, ShardRow]:
        """Every shard row by shard id (a full scan)."""
        return dict(self.contents().rows)

    def strangers(self) -> list[str]:
        """Ids of rows that have no business in a table without a consumer and without a claim: it is another program's."""
        ids = (str(item["id"]) for item in self.table.anything())
        return sorted(i for i in ids if not ((kind := kind_of(i)) and kind.comes_first))

    def put_claim(self, wanted: MigrationClaim) -> bool:
        """The first claim on a table. Condition: neither a consumer nor a claim exists. A lost reply is recognised by the token.

        Returns:
            False: one of them does; look again.
        """
        return self._claimed(wanted, Put(wanted.to_item(), (NEW_ROW,)))

    def take_claim(self, seen: MigrationClaim, wanted: MigrationClaim) -> bool:
        """Takes over a claim that was released or waited out; `wanted` is what it becomes.

        Condition: no consumer exists, and nothing moved since `seen`. A lost reply is recognised by the token.

        Returns:
            False: somebody beat, took or completed in between.
        """
        return self._claimed(wanted, Put(wanted.to_item(), equals(generation=seen.row.generation, counter=seen.row.counter)))

    def _claimed(self, wanted: MigrationClaim, put: Put) -> bool:
        result = self.table.transact([Check(CONSUMER, (NEW_ROW,)), put])
        row = result.refused.get(1)
        return result.applied or (row is not None and row.get("token") == wanted.row.token)

    def beat(self, claim: MigrationClaim) -> None:
        """Moves the claim's heartbeat.

        Raises:
            LeaseHeld: another migrator took the claim.
        """
        self._mine(Update(MIGRATION, claim.mine, add={"counter": 1}))

    def start_copy(self, claim: MigrationClaim, copy: Copy) -> MigrationClaim:
        """Says what is about to be written.

        Raises:
            LeaseHeld: another migrator took the claim.
        """
        row = replace(claim.row, state=COPYING, plan_digest=copy.plan_digest, rows=copy.rows, risks=copy.risks)
        item = row.to_item()
        self._mine(Update(MIGRATION, claim.mine, put={(name,): item[name] for name in ("state", "planDigest", "rows", "risks")}))
        return replace(claim, row=row)

    def _mine(self, update: Update) -> None:
        if not self.table.write(update).applied:
            raise LeaseHeld(LOST)

    def write_rows(self, claim: MigrationClaim, rows: Sequence[ShardRow], former: Mapping[str, ShardRow]) -> None:
        """One transaction of up to `MEMBERS` rows; `former` holds the stored rows of those that exist.

        Condition: the claim is held and COPYING. A row that was absent still is, and one that was there is unchanged and was never used.

        Raises:
            LeaseHeld: another migrator took the claim.
            ProtocolViolation: a row is neither as it was read nor as it is wanted: something that is not a migrator wrote it.
        """
        if len(rows) > MEMBERS:
            raise ValueError(f"a transaction has at most {MEMBERS} rows and one check, not {len(rows)}")
        check = Check(MIGRATION, (*claim.mine, Equals(("state",), COPYING)))
        result = self.table.transact([check, *(Put(row.to_item(), _unchanged(former.get(row.id))) for row in rows)])
        if result.applied:
            return
        if 0 in result.refused:
            raise LeaseHeld(LOST)
        self._accept_if_written(rows)

    def _accept_if_written(self, rows: Sequence[ShardRow]) -> None:
        """A transaction has one answer: if its reply was lost, its second try finds every row as it wrote it."""
        stored = self.table.batch_get([row.key for row in rows])
        if strange := [row.id for row in rows if stored.get(row.key) != row.to_item()]:
            raise ProtocolViolation(f"rows of {', '.join(strange[:10])} in {self.table.name} were changed by something that is not a migrator")

    def complete(self, claim: MigrationClaim, consumer: ConsumerRow) -> None:
        """The last write: the table is a consumer's from now on. Condition: the claim is held and COPYING; there is no consumer row.

        A lost reply is recognised by the claim: COMPLETE, with this token.

        Raises:
            LeaseHeld: another migrator took the claim.
            ProtocolViolation: there is a consumer row beside the claim: a program that is not a migrator put it.
        """
        done = Update(
            MIGRATION,
            when=(*claim.mine, Equals(("state",), COPYING)),
            put={("state",): COMPLETE, ("released",): True},
        )
        result = self.table.transact([done, Put(consumer.to_item(), (NEW_ROW,))])
        row = result.refused.get(0) or {}
        if result.applied or (row.get("token"), row.get("state")) == (claim.row.token, COMPLETE):
            return
        if 0 in result.refused:
            raise LeaseHeld(LOST)
        raise ProtocolViolation(f"table {self.table.name} was made a consumer's by something that is not a migrator")

    def release(self, claim: MigrationClaim) -> bool:
        """Gives the claim back, so that the next migrator need not wait. False: it is another's, or complete."""
        open_state = AnyOf((Equals(("state",), CLAIMED), Equals(("state",), COPYING)))
        return self.table.write(Update(MIGRATION, (*claim.mine, open_state), put={("released",): True})).applied


def _unchanged(row: ShardRow | None) -> tuple[Condition, ...]:
    if row is None:
        return (NEW_ROW,)
    return equals(generation=0, batch=0, start=row.start.to_map(), end=row.end.to_map())


def in_transactions(rows: Sequence[ShardRow]) -> list[list[ShardRow]]:
    """Rows in lists that fit into one transaction each, by number and by bytes."""
    return list(packed(rows, MEMBERS, lambda row: 2 * len(str(row.to_item()).encode()), MAX_TRANSACTION_BYTES))
