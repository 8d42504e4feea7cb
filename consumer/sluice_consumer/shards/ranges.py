"""What a range of a shard is: where it begins, how much it may hold, what was bound, what was fetched. Values, and nothing that reads."""

from __future__ import annotations

from dataclasses import dataclass

from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_consumer.shards.collect import RecordColumnSet


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one range may hold, counted from its first record: user records, and bytes of payload; of aggregates as they are delivered, with keys.

    One Kinesis record is taken whatever its size. `until_millis`: a range ends in front of the first record that arrived then or later, epoch
    milliseconds (docs/protocol.md, "Where a run ends").
    """

    max_records: int
    max_bytes: int
    until_millis: int | None = None


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Where a shard is read from.

    `read_to` is the service's time up to which it was read before (0: unknown), `was_open` whether it is known to have been open then. `iterator`
    is one that the range before left, which saves a call; it may have expired. `earliest_arrival_millis` is of a shard that was not read: a time at
    which its parents were open (0: unknown). `parents` are the shards that it follows: all their records came before all of its own.
    """

    shard_id: str
    position: Position
    read_to: int = 0
    iterator: str | None = None
    earliest_arrival_millis: int = 0
    parents: frozenset[str] = frozenset()
    was_open: bool = False

    @property
    def checkpoint(self) -> str | None:
        """The sequence number that another consumer came to, as long as nothing was read after it: how long ago that was is not known."""
        return None if self.read_to else self.position.sequence


@dataclass(frozen=True, slots=True)
class BoundRange:
    """A range as its row has it: (start, end], the Kinesis record of its first user record, and its number of user records."""

    shard_id: str
    start: Position
    end: Position
    first: str | None
    records: int

    @staticmethod
    def of(row: ShardRow) -> BoundRange:
        """The range that a row has."""
        return BoundRange(row.id, row.start, row.end, row.first, row.records)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A range in memory.

    Attributes:
        first: sequence number of the Kinesis record of the first user record; None without any.
        size: bytes of payload in the range, aggregates counted as they were sent.
        behind: how far `end` is behind the tip, milliseconds.
        read_to: the service's time up to which the shard was read; not less than that of the position it began at, unless it ends in front of a
            record that arrived earlier. Of one that ended a time at which it was open: so its children know how old they may be.
        children: what follows; with END only, and not in a replay (the row has them).
        note: what may be missing before this range, for people, without the shard's id; None almost always.
        iterator: continues at `end`. Only where that is the end of a reply, because an iterator has no position within one.
        cut: it ends in front of a record that arrived at `Limits.until_millis` or later.
    """

    shard_id: str
    start: Position
    end: Position
    columns: RecordColumnSet
    first: str | None = None
    size: int = 0
    behind: int = 0
    read_to: int = 0
    children: tuple[Child, ...] | None = None
    note: str | None = None
    iterator: str | None = None
    cut: bool = False

    @property
    def records(self) -> int:
        """User records in the range."""
        return len(self.columns)
