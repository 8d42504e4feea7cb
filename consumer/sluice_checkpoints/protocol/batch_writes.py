"""The conditional writes of a batch: fence, bind, register, close, commit, each with its condition in sight (docs/protocol.md, "A batch").

`store.CheckpointStore` has them beside the lease and the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sluice_checkpoints.errors import Fenced, LostRace, ProtocolViolation
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import CONSUMER, SHARD_PREFIX, Child, Item, ShardRow, stored_iterator
from sluice_checkpoints.protocol.table import Absent, AnyOf, AtMost, Below, Equals, Path, Table, Update, equals


def reader_key(generation: int, task: str) -> str:
    """The key in `ShardRow.readers` of a task, or of what reads instead of it, in the epoch of this generation.

    A task of Spark is `"<stage id>.<partition id>"`. Keys are written and taken apart here only.
    """
    return f"{generation}.{task}"


def is_of(key: str, generation: int) -> bool:
    """Whether the reader is of the epoch of this generation."""
    return key.startswith(reader_key(generation, ""))


def generation_of(key: str) -> int:
    """The generation of a reader's epoch.

    Raises:
        ValueError: the key begins with no number.
    """
    return int(key.partition(".")[0])


@dataclass(frozen=True, slots=True)
class Epoch:
    """One driver process tree from take-over to exit: the generation it owns and the token of its take."""

    generation: int
    token: str


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """The attempt of a task that emits a range. `key` is that of `ShardRow.readers` (`reader_key`)."""

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
    calls: Mapping[str, int] = field(default_factory=dict)
    iterator: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The shard's range of this batch was bound before: emit exactly that one (after `register`)."""

    row: ShardRow


class BatchSteps:
    """A batch's steps on one table."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def fence(self, epoch: Epoch, shard_id: str) -> None:
        """Marks a shard row as this epoch's: binds of earlier epochs are refused from now on.

        Raises:
            Fenced: a later epoch was here.
        """
        key = SHARD_PREFIX + shard_id
        put: dict[Path, int] = {("generation",): epoch.generation}
        outcome = self.table.write(Update(key, (Below(("generation",), epoch.generation),), put=put))
        if not outcome.applied:
            not_fenced(outcome.row, epoch, shard_id)

    def bind(self, epoch: Epoch, batch: int, bound: Range, reader: TaskAttempt) -> Replay | None:
        """Fixes what `batch` contains of a shard. Only after it returns None may the rows be emitted.

        Condition: this epoch's row, no range of this batch yet, and the range starts where the last one ended.

        Returns:
            None: bound (including when only the reply of an earlier try was lost), or `Replay`.

        Raises:
            Fenced: a later epoch took over. LostRace: a later batch is open. ProtocolViolation: the row's end is another than it was planned from.
        """
        optional = _optional(batch, bound)
        outcome = self.table.write(
            Update(
                SHARD_PREFIX + bound.shard_id,
                when=(
                    Equals(("generation",), epoch.generation),
                    Below(("batch",), batch),
                    Equals(("end",), bound.start.to_map()),
                ),
                put=_bound(batch, bound, reader) | {path: value for path, value in optional.items() if value is not None},
                remove=frozenset({("replays",), ("excluded",), ("letter",), *(path for path, value in optional.items() if value is None)}),
            )
        )
        if outcome.applied:
            return None
        row = not_fenced(outcome.row, epoch, bound.shard_id)
        if row.generation < epoch.generation:
            self.fence(epoch, bound.shard_id)
            return self.bind(epoch, batch, bound, reader)
        if row.batch > batch:
            raise LostRace(f"batch {row.batch} of {bound.shard_id} is open; {batch} is past")
        if row.batch < batch:
            raise ProtocolViolation(f"{bound.shard_id} ends at {row.end}, but batch {batch} was planned from {bound.start}")
        mine = row.readers.get(reader.key) == reader.attempt and (row.start, row.end) == (bound.start, bound.end)
        return None if mine and row.records == bound.records else Replay(row)

    def register(self, epoch: Epoch, batch: int, shard_id: str, reader: TaskAttempt) -> int | None:
        """Says that this attempt is about to emit a bound range again.

        Condition: this epoch, this batch, and no later attempt of the same task registered.

        Returns:
            The attempt that stood there before: it may be alive and emitting, so the caller waits a lease duration. Its own number too, for then
            the reply of an earlier try, which may have named another, was lost. None: no process of this epoch; emit at once.

        Raises:
            Fenced: a later epoch took over. LostRace: a later attempt, or a later batch.
        """
        path: Path = ("readers", reader.key)
        outcome = self.table.write(
            Update(
                SHARD_PREFIX + shard_id,
                when=(
                    *equals(generation=epoch.generation, batch=batch),
                    AnyOf((Absent(path), AtMost(path, reader.attempt))),
                ),
                put={path: reader.attempt},
                add={"replays": 1},
            )
        )
        if outcome.applied:
            former = (outcome.row or {}).get("readers", {}).get(reader.key)
            return None if former is None else int(former)
        row = not_fenced(outcome.row, epoch, shard_id)
        if row.generation < epoch.generation:
            self.fence(epoch, shard_id)
            return self.register(epoch, batch, shard_id, reader)
        raise LostRace(f"a later attempt reads {shard_id}, or batch {batch} is past (row: batch {row.batch}, {dict(row.readers)})")

    def forget(self, epoch: Epoch, row: ShardRow) -> ShardRow:
        """Drops the readers of earlier epochs, which are not needed again: a row holds 400 KB, and every epoch that replays a batch adds its own.

        Condition: this epoch's row, and exactly the readers that `row` has. If it fails, somebody has registered since, and nothing is dropped.

        Returns:
            The row without them, or as it was.

        Raises:
            Fenced: a later epoch took over.
        """
        own = {key: attempt for key, attempt in row.readers.items() if is_of(key, epoch.generation)}
        left = replace(row, readers=own, replays=row.replays - (len(row.readers) - len(own)))
        outcome = self.table.write(
            Update(
                row.key,
                when=(*equals(generation=epoch.generation), Equals(("readers",), dict(row.readers))),
                put={("readers",): own, ("replays",): left.replays},
            )
        )
        if outcome.applied:
            return left
        not_fenced(outcome.row, epoch, row.id)
        return row

    def close(self, epoch: Epoch, batch: int, row: ShardRow) -> ShardRow:
        """Fixes that `batch` contains nothing of a shard that no task bound, if the row is still as in `row`.

        Raises:
            Fenced: a later epoch took over. LostRace: a late task bound it after all; the batch may not be committed by this epoch.
        """
        closed = replace(
            row,
            batch=batch,
            start=row.end,
            first=None,
            records=0,
            readers={},
            read_by=None,
            replays=0,
            size=0,
            note=None,
            calls={},
            iterator=None,
            excluded=0,
            letter=None,
        )
        outcome = self.table.write(
            Update(
                row.key,
                when=(
                    Equals(("generation",), epoch.generation),
                    Below(("batch",), batch),
                    Equals(("end",), row.end.to_map()),
                ),
                put={("batch",): batch, ("start",): row.end.to_map(), ("records",): 0, ("readers",): {}, ("bytes",): 0},
                remove=frozenset({("first",), ("note",), ("calls",), ("readBy",), ("replays",), ("excluded",), ("letter",)}),
            )
        )
        if outcome.applied:
            return closed
        stored = not_fenced(outcome.row, epoch, row.id)
        if stored.batch == batch and not stored.readers and stored.start == stored.end == row.end:
            return closed  # only the reply was lost: a bind always leaves its reader
        raise LostRace(f"{row.id} was bound late in batch {batch}, after its jobs had ended")

    def commit(
        self, epoch: Epoch, batch: int, letters: Sequence[str] = (), filled: int | None = None, facts: Mapping[str, int] | None = None
    ) -> None:
        """Moves every shard past `batch` with one write, which also makes its pending dead letters final.

        Args:
            epoch: the epoch that commits.
            batch: its number.
            letters: what the row is to name as final and unpublished, that of earlier batches included. Empty: it names none, and is to name none.
            filled: the last batch up to this one that contained shards; None: as before.
            facts: for people; see `ConsumerRow.commit_facts`.

        Raises:
            Fenced: a later epoch took over. ProtocolViolation: `batch` is not the next one.
        """
        put: dict[Path, object] = {("committed",): batch} | ({("letters",): list(letters)} if letters else {})
        put |= {} if filled is None else {("filled",): filled}
        put |= {("lastCommit",): {"batch": batch, **facts}} if facts else {}
        outcome = self.table.write(Update(CONSUMER, equals(generation=epoch.generation, committed=batch - 1), put=put))
        if outcome.applied:
            return
        stored = outcome.row or {}
        if stored.get("generation") != epoch.generation:
            raise Fenced(f"generation {stored.get('generation')} took over from {epoch.generation}")
        if stored.get("committed") != batch:  # equal: only the reply was lost
            raise ProtocolViolation(f"batch {stored.get('committed')} is committed; {batch} is not the next")


def _bound(batch: int, bound: Range, reader: TaskAttempt) -> dict[Path, object]:
    put: dict[Path, object] = {
        ("batch",): batch,
        ("start",): bound.start.to_map(),
        ("end",): bound.end.to_map(),
        ("records",): bound.records,
        ("readTo",): bound.read_to,
        ("readers",): {reader.key: reader.attempt},
        ("readBy",): reader.key,
        ("bytes",): bound.size,
        ("behind",): bound.behind,
    }
    if bound.children is not None:
        put[("children",)] = [child.to_map() for child in bound.children]
    return put


def _optional(batch: int, bound: Range) -> dict[Path, object]:
    """What a range may lack; then the row must not keep that of the range before."""
    left = stored_iterator(batch, bound.iterator) if bound.iterator else None
    return {("first",): bound.first, ("note",): bound.note, ("calls",): dict(bound.calls) or None, ("onward",): left}


def not_fenced(item: Item | None, epoch: Epoch, shard_id: str) -> ShardRow:
    """The row whose write was refused, if no later epoch owns it.

    Raises:
        Fenced: one does. ProtocolViolation: there is no row.
    """
    if item is None:
        raise ProtocolViolation(f"there is no row for {shard_id}: Sluice deletes no row of a shard that is read")
    row = ShardRow.from_item(item)
    if row.generation > epoch.generation:
        raise Fenced(f"generation {row.generation} took over {shard_id} from {epoch.generation}")
    return row
