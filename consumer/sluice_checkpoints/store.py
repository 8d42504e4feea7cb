"""The conditional writes of the protocol: one function a step, its condition in sight (docs/protocol.md).

Every function says who may win it. Losing is an answer where the caller goes on (`None`, `False`, `Replay`), and an exception where it must stop.
Nothing here reads a clock, and nothing is ever deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Fenced, LostRace, ProtocolViolation
from sluice_checkpoints.model import (
    ACTIVE,
    CONSUMER,
    EXPORTED,
    MIGRATION,
    SHARD_PREFIX,
    Child,
    ConsumerRow,
    Item,
    MigrationRow,
    Position,
    ShardRow,
)
from sluice_checkpoints.table import (
    NEW_ROW,
    Absent,
    AnyOf,
    AtMost,
    Below,
    Check,
    Equals,
    Path,
    Put,
    Table,
    Update,
    chunks,
    equals,
)

MEMBERS = 99  # rows beside the one check in a transaction


@dataclass(frozen=True, slots=True)
class Life:
    """One driver process tree from take-over to exit: the generation it owns and the token of its take."""

    generation: int
    token: str


@dataclass(frozen=True, slots=True)
class Reader:
    """Who emits a range: one attempt of one task. `key` is `"<generation>.<stage id>.<partition id>"`."""

    key: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Range:
    """What a task fetched from a shard: the records in (start, end]. Fields as in `ShardRow`."""

    shard_id: str
    start: Position
    end: Position
    first: str | None = None
    records: int = 0
    read_to: int = 0
    children: tuple[Child, ...] | None = None
    size: int = 0
    behind: int = 0
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The shard's range of this batch was bound before: emit exactly that one (after `register`)."""

    row: ShardRow


class CheckpointStore:
    """The protocol's steps on one table."""

    def __init__(self, table: Table) -> None:
        self.table = table

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def consumer(self) -> ConsumerRow | None:
        """The consumer row."""
        item = self.table.get(CONSUMER)
        return ConsumerRow.from_item(item) if item else None

    def migration(self) -> MigrationRow | None:
        """The migration row."""
        item = self.table.get(MIGRATION)
        return MigrationRow.from_item(item) if item else None

    def shards(self) -> dict[str, ShardRow]:
        """Every shard row by shard id: a full scan, for take-over and people."""
        rows = (ShardRow.from_item(i) for i in self.table.scan() if i["id"].startswith(SHARD_PREFIX))
        return {row.id: row for row in rows}

    def read(self, shard_ids: Iterable[str]) -> dict[str, ShardRow]:
        """These shards' rows.

        Raises:
            ProtocolViolation: one is missing; nothing ever deletes a row.
        """
        ids = list(shard_ids)
        found = self.table.batch_get([SHARD_PREFIX + i for i in ids])
        if missing := [i for i in ids if SHARD_PREFIX + i not in found]:
            raise ProtocolViolation(f"no row for shards {missing} in {self.table.name}: rows are never deleted by Sluice")
        return {i: ShardRow.from_item(found[SHARD_PREFIX + i]) for i in ids}

    # -- lease ---------------------------------------------------------------------------------------------------------------------

    def take(self, seen: ConsumerRow, wanted: ConsumerRow) -> ConsumerRow | None:
        """Takes the lease from the state `seen`; of `wanted` the token, the promise, the holder and the time are used.

        Condition: nothing moved since `seen`, and the table is ACTIVE. A lost reply is recognised by the token.

        Returns:
            The row as taken, or None: somebody beat, took or exported meanwhile.
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
                when=equals(generation=seen.generation, counter=seen.counter, state=ACTIVE),
                put={
                    ("generation",): taken.generation,
                    ("counter",): taken.counter,
                    ("token",): taken.token,
                    ("leaseMillis",): taken.lease_millis,
                    **_known(holder=taken.holder, updatedAt=taken.updated_at),
                },
                remove=frozenset({("released",)}),
            )
        )
        mine = outcome.found is not None and outcome.found.get("token") == taken.token
        return taken if outcome.applied or mine else None

    def beat(self, life: Life, lease_millis: int | None = None) -> bool:
        """Moves the heartbeat counter; with `lease_millis` it also makes a new promise. False: the lease is another's."""
        promise: dict[Path, int] = {} if lease_millis is None else {("leaseMillis",): lease_millis}
        return self.table.write(Update(CONSUMER, _owned(life), put=promise, add={"counter": 1})).applied

    def release(self, life: Life) -> bool:
        """Says that this life is over and silent, so that the next need not wait. False: the lease is another's."""
        return self.table.write(Update(CONSUMER, _owned(life), put={("released",): True})).applied

    def export(self, life: Life, to: str) -> bool:
        """The end of this table: its positions stand in table `to` now, and nobody takes the lease again (`take` asks for ACTIVE).

        Condition: the lease is this life's. Sent twice it says the same, so a lost reply does no harm. False: the lease is another's.
        """
        return self.table.write(Update(CONSUMER, _owned(life), put={("state",): EXPORTED, ("exportedTo",): to})).applied

    def fence(self, life: Life, shard_id: str) -> None:
        """Marks a shard row as this life's: binds of earlier lives are refused from now on.

        Raises:
            Fenced: a later life was here.
        """
        key = SHARD_PREFIX + shard_id
        put: dict[Path, int] = {("generation",): life.generation}
        outcome = self.table.write(Update(key, (Below(("generation",), life.generation),), put=put))
        if not outcome.applied:
            _not_fenced(outcome.found, life, shard_id)

    # -- rows ----------------------------------------------------------------------------------------------------------------------

    def create_consumer(self, row: ConsumerRow) -> bool:
        """Puts the consumer row of a fresh table. Condition: neither it nor a migration exists. False: one does."""
        check = Check(MIGRATION, (NEW_ROW,))
        return self.table.transact([check, Put(row.to_item(), (NEW_ROW,))]).applied

    def put_new(self, item: Item) -> bool:
        """Puts a row that nobody changes afterwards. False: it exists."""
        return self.table.write(Put(item, (NEW_ROW,))).applied

    def finish_bootstrap(self, life: Life) -> None:
        """Says that every shard of the bootstrap plan has its row.

        Raises:
            Fenced: the lease is another's.
        """
        if not self.table.write(Update(CONSUMER, _owned(life), put={("bootstrapped",): True})).applied:
            raise Fenced("the lease was taken by another life during the bootstrap")

    def create_shards(self, life: Life, committed: int, rows: Sequence[ShardRow]) -> None:
        """Puts rows of shards found later, each only if absent, while no batch after `committed` is committed.

        Raises:
            Fenced: another life, or the batch moved on (docs/protocol.md: a row created late would join a batch that was planned without it).
        """
        check = Check(CONSUMER, equals(generation=life.generation, committed=committed))
        for chunk in chunks(rows, MEMBERS):
            pending: list[ShardRow] = chunk
            while pending:
                result = self.table.transact([check, *(Put(row.to_item(), (NEW_ROW,)) for row in pending)])
                if result.applied:
                    break
                if 0 in result.refused:
                    raise Fenced(f"generation {life.generation} no longer writes, or batch {committed} is not the last committed")
                pending = [row for i, row in enumerate(pending, 1) if i not in result.refused]

    # -- batches -------------------------------------------------------------------------------------------------------------------

    def bind(self, life: Life, batch: int, bound: Range, reader: Reader) -> Replay | None:
        """Fixes what `batch` contains of a shard. Only after it returns None may the rows be emitted.

        Condition: this life's row, no range of this batch yet, and the range starts where the last one ended.

        Returns:
            None: bound (also when only the reply of an earlier try was lost), or `Replay`.

        Raises:
            Fenced: a later life took over. LostRace: a later batch is open. ProtocolViolation: the row's end is another than it was planned from.
        """
        outcome = self.table.write(
            Update(
                SHARD_PREFIX + bound.shard_id,
                when=(
                    Equals(("generation",), life.generation),
                    Below(("batch",), batch),
                    Equals(("end",), bound.start.to_map()),
                ),
                put=_bound(batch, bound, reader),
                remove=frozenset({("replays",), *([("first",)] if bound.first is None else []), *([("note",)] if bound.note is None else [])}),
            )
        )
        if outcome.applied:
            return None
        row = _not_fenced(outcome.found, life, bound.shard_id)
        if row.generation < life.generation:
            self.fence(life, bound.shard_id)
            return self.bind(life, batch, bound, reader)
        if row.batch > batch:
            raise LostRace(f"batch {row.batch} of {bound.shard_id} is open; {batch} is past")
        if row.batch < batch:
            raise ProtocolViolation(f"{bound.shard_id} ends at {row.end}, but batch {batch} was planned from {bound.start}")
        mine = row.readers.get(reader.key) == reader.attempt and (row.start, row.end) == (bound.start, bound.end)
        return None if mine and row.records == bound.records else Replay(row)

    def register(self, life: Life, batch: int, shard_id: str, reader: Reader) -> int | None:
        """Says that this attempt is about to emit a bound range again.

        Condition: this life, this batch, and no later attempt of the same task registered.

        Returns:
            The attempt that stood there before: it may be alive and emitting, so the caller waits a lease duration. Its own number too, for then
            the reply of an earlier try, which may have named another, was lost. None: nobody of this life; emit at once.

        Raises:
            Fenced: a later life took over. LostRace: a later attempt, or a later batch.
        """
        path: Path = ("readers", reader.key)
        outcome = self.table.write(
            Update(
                SHARD_PREFIX + shard_id,
                when=(
                    *equals(generation=life.generation, batch=batch),
                    AnyOf((Absent(path), AtMost(path, reader.attempt))),
                ),
                put={path: reader.attempt},
                add={"replays": 1},
            )
        )
        if outcome.applied:
            former = (outcome.found or {}).get("readers", {}).get(reader.key)
            return None if former is None else int(former)
        row = _not_fenced(outcome.found, life, shard_id)
        if row.generation < life.generation:
            self.fence(life, shard_id)
            return self.register(life, batch, shard_id, reader)
        raise LostRace(f"a later attempt reads {shard_id}, or batch {batch} is past (row: batch {row.batch}, {dict(row.readers)})")

    def close(self, life: Life, batch: int, row: ShardRow) -> ShardRow:
        """Fixes that `batch` contains nothing of a shard that no task bound, as `row` stands.

        Raises:
            Fenced: a later life took over. LostRace: a late task bound it after all; the batch may not be committed by this life.
        """
        closed = replace(row, batch=batch, start=row.end, first=None, records=0, readers={}, replays=0, size=0, note=None)
        outcome = self.table.write(
            Update(
                row.key,
                when=(
                    Equals(("generation",), life.generation),
                    Below(("batch",), batch),
                    Equals(("end",), row.end.to_map()),
                ),
                put={("batch",): batch, ("start",): row.end.to_map(), ("records",): 0, ("readers",): {}, ("bytes",): 0},
                remove=frozenset({("first",), ("note",), ("replays",)}),
            )
        )
        if outcome.applied:
            return closed
        found = _not_fenced(outcome.found, life, row.id)
        if found.batch == batch and not found.readers and found.start == found.end == row.end:
            return closed  # only the reply was lost: a bind always leaves its reader
        raise LostRace(f"{row.id} was bound late in batch {batch}, after its jobs had ended")

    def commit(self, life: Life, batch: int) -> None:
        """Moves every shard past `batch` with one write.

        Raises:
            Fenced: a later life took over. ProtocolViolation: `batch` is not the next one.
        """
        outcome = self.table.write(Update(CONSUMER, equals(generation=life.generation, committed=batch - 1), put={("committed",): batch}))
        if outcome.applied:
            return
        found = outcome.found or {}
        if found.get("generation") != life.generation:
            raise Fenced(f"generation {found.get('generation')} took over from {life.generation}")
        if found.get("committed") != batch:  # equal: only the reply was lost
            raise ProtocolViolation(f"batch {found.get('committed')} is committed; {batch} is not the next")


def _owned(life: Life) -> tuple[Equals, ...]:
    return (Equals(("generation",), life.generation), Equals(("token",), life.token))


def _known(**values: str | None) -> Mapping[Path, str]:
    return {(name,): value for name, value in values.items() if value is not None}


def _bound(batch: int, bound: Range, reader: Reader) -> dict[Path, object]:
    put: dict[Path, object] = {
        ("batch",): batch,
        ("start",): bound.start.to_map(),
        ("end",): bound.end.to_map(),
        ("records",): bound.records,
        ("readTo",): bound.read_to,
        ("readers",): {reader.key: reader.attempt},
        ("bytes",): bound.size,
        ("behind",): bound.behind,
    }
    optional = {("first",): bound.first, ("note",): bound.note}
    put |= {path: value for path, value in optional.items() if value is not None}
    if bound.children is not None:
        put[("children",)] = [child.to_map() for child in bound.children]
    return put


def _not_fenced(found: Item | None, life: Life, shard_id: str) -> ShardRow:
    if found is None:
        raise ProtocolViolation(f"there is no row for {shard_id}: rows are never deleted by Sluice")
    row = ShardRow.from_item(found)
    if row.generation > life.generation:
        raise Fenced(f"generation {row.generation} took over {shard_id} from {life.generation}")
    return row
