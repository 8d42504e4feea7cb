"""What a range of a shard is: where it begins, how much it may hold, what was bound, what was fetched. Values, and nothing that reads.

And what may be missing before one, in words for people (docs/protocol.md, "Retention"). The caller names the shard.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.kinesis.client import RecordColumns
from sluice_consumer.shards.collect import RecordColumnSet

WHOLE_SECOND_MILLIS = 1000  # the service gives its clock in whole seconds: up to so much more may have passed
HOUR_MILLIS = 3_600_000


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


def overtaken(place: FetchRequest, stream: StreamIdentity, now_millis: int) -> str | None:
    """What to say if retention may have passed a position: the oldest record that may be unread there is older than records are kept.

    No record is older than its stream. An empty reply that is a whole retention behind looks the same for a shard that is merely idle, so the reply
    alone says nothing.
    """
    return _loss_text(place, stream, now_millis, stream.retention_millis, "keeps records for")


def overtaken_before(place: FetchRequest, stream: StreamIdentity, now_millis: int) -> str | None:
    """What to say if the retention that the stream had before it was raised may have passed a position. The caller looks what is still there."""
    if not stream.shorter_millis:
        return None
    return _loss_text(place, stream, now_millis, stream.shorter_millis, "kept records only for")


def _loss_text(place: FetchRequest, stream: StreamIdentity, now_millis: int, kept_millis: int, how: str) -> str | None:
    since, what = _since(place)
    unread_since = max(since, stream.created_millis) if since else 0
    if not since or now_millis - unread_since <= kept_millis - WHOLE_SECOND_MILLIS:
        return None
    return what.format(time=iso(since), keeps=f"{how} {kept_millis / HOUR_MILLIS:g} h", place=_shown(place.position))


def _since(place: FetchRequest) -> tuple[int, str]:
    """From when on records may be unread (0: unknown), and what to say of that."""
    follows = "it follows shards that were read up to {time}, and the stream {keeps}: its first records may have expired"
    if place.read_to and place.position != TRIM_HORIZON:
        return (
            place.read_to,
            "it was last read up to {time}, and the stream {keeps}: what came after {place} may have expired",
        )
    if place.position.millis:
        begins = "it was to begin at {time}, and the stream {keeps}: what came between then and the oldest record may have expired"
        return place.position.millis, begins
    return max(place.read_to, place.earliest_arrival_millis), follows


def gone(place: FetchRequest) -> str:
    """What to say of a shard that holds no record any more that its former consumer had read."""
    return f"it holds nothing any more that its former consumer had read: what came after {_shown(place.position)} may have expired"


def vanished(place: FetchRequest) -> str:
    """What to say of a shard that the service does not know any more."""
    read = f"last read up to {iso(place.read_to)}" if place.read_to else "never read"
    return f"it expired before it was read to its end: unread after {_shown(place.position)}, {read}"


def iso(millis: int) -> str:
    """A time of the service, in UTC."""
    exact = "milliseconds" if millis % 1000 else "seconds"
    return datetime.datetime.fromtimestamp(millis / 1000, datetime.UTC).isoformat(timespec=exact).replace("+00:00", "Z")


def _shown(position: Position) -> str:
    return str(position) if position.millis is None else iso(position.millis)


def before(records: RecordColumns, until_millis: int | None) -> int:
    """How many of the records of a reply are in front of the first one that arrived at `until_millis` (epoch milliseconds) or later."""
    if until_millis is None:
        return len(records)
    return next((i for i, arrival in enumerate(records.arrival_millis) if arrival >= until_millis), len(records))
