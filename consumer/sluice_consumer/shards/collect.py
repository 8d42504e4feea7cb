"""Collects user records from replies into a range: whole Kinesis records up to a limit, aggregates taken apart."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from sluice_checkpoints.position import Position
from sluice_consumer.kinesis.client import RecordColumns, Records
from sluice_consumer.shards.aggregation import MAGIC, UserRecord, WholeRecord, user_records


@dataclass(frozen=True, slots=True)
class RecordSlice:
    """User records that came together; `sub` is None where each is a Kinesis record of its own."""

    records: RecordColumns
    sub: list[int] | None = None


@dataclass(slots=True, eq=False)
class RecordColumnSet:
    """User records in columns of one length, in the order of the shard; lists are made of them only on demand."""

    parts: list[RecordSlice] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(len(piece.records) for piece in self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordColumnSet) and list(self.rows()) == list(other.rows())

    __hash__ = None  # type: ignore[assignment]

    def rows(self) -> Iterator[tuple[str, int, str, bytes, int]]:
        """Sequence number, sub, key, payload and arrival of each."""
        return zip(self.sequence, self.sub, self.partition_key, self.data, self.arrival_millis, strict=True)

    @property
    def first(self) -> str | None:
        """Sequence number of the first."""
        return next((piece.records.number(0) for piece in self.parts), None)

    @property
    def partition_key(self) -> list[str]:
        """Partition keys."""
        return [key for piece in self.parts for key in piece.records.partition_key]

    @property
    def data(self) -> list[bytes]:
        """Payloads."""
        return [data for piece in self.parts for data in piece.records.data]

    @property
    def sequence(self) -> list[str]:
        """Sequence numbers of the Kinesis records."""
        return [sequence for piece in self.parts for sequence in piece.records.sequence]

    @property
    def sub(self) -> list[int]:
        """Positions within a Kinesis record."""
        return [sub for piece in self.parts for sub in (piece.sub or [0] * len(piece.records))]

    @property
    def arrival_millis(self) -> list[int]:
        """Arrival times, epoch milliseconds."""
        return [millis for piece in self.parts for millis in piece.records.arrival_millis]


@dataclass(slots=True)
class RangeBuffer:
    """What was taken of a shard after `start`, and up to `until` where that lies inside of an aggregate.

    Attributes:
        position: after the last Kinesis record taken; where a new iterator continues.
        size: bytes of payload of the Kinesis records taken, aggregates counted as they were sent.
        delivered: the same as it is handed over, which is what limits count: of aggregates the user records' data and partition keys.
        taken: Kinesis records taken.
        last_arrival_millis: when the last of them arrived; 0 without any.
    """

    start: Position
    until: Position | None = None
    position: Position = field(init=False)
    columns: RecordColumnSet = field(default_factory=RecordColumnSet)
    size: int = 0
    delivered: int = 0
    taken: int = 0
    last_arrival_millis: int = 0

    def __post_init__(self) -> None:
        self.position = self.start

    @property
    def first(self) -> str | None:
        """Sequence number of the Kinesis record that the first user record is of."""
        return self.columns.first

    def take(self, records: RecordColumns, max_records: int, max_bytes: int) -> bool:
        """Takes as many Kinesis records as fit; the first with user records always does.

        Returns:
            Whether all were taken.
        """
        fresh = self._unread(records)
        count = len(records)
        plain = self.start.sub is None and not self._ends_inside and not records.any_with(MAGIC)
        end = self._take_plain(records, fresh, max_records, max_bytes) if plain else self._take_mixed(records, fresh, max_records, max_bytes)
        if end > fresh:
            self.taken += end - fresh
            self.position = Position.after(records.number(end - 1))
            self.last_arrival_millis = int(records.between(end - 1, end).arrival_millis[0])
        return end == count

    @property
    def _ends_inside(self) -> bool:
        return self.until is not None and self.until.sub is not None

    def _unread(self, records: RecordColumns) -> int:
        """Index of the first record that was not read before; not 0 only where the service goes back behind the position asked for."""
        if self.position.sequence is None:
            return 0
        number, inside = int(self.position.sequence), self.position.sub is not None
        for i in range(len(records)):
            sequence = int(records.number(i))
            if sequence > number or (inside and sequence == number):
                return i
        return len(records)

    def _take_plain(self, records: RecordColumns, at: int, max_records: int, max_bytes: int) -> int:
        """All at once, for records that are their own only user record."""
        if at == len(records):
            return at
        totals, had = records.totals(), len(self.columns)
        before = int(totals[at - 1]) if at else 0
        fits = min(bisect_right(totals, max_bytes - self.delivered + before, lo=at), at + max_records - had)
        end = max(fits, at if had else at + 1)
        if end > at:
            self.columns.parts.append(RecordSlice(records.between(at, end)))
            more = int(totals[end - 1]) - before
            self.size += more
            self.delivered += more
        return end

    def _take_mixed(self, records: RecordColumns, at: int, max_records: int, max_bytes: int) -> int:
        taken_apart, sub, had, end = Records(), list[int](), len(self.columns), at
        rows = zip(records.sequence, records.partition_key, records.data, records.arrival_millis, strict=True)
        for sequence, key, data, arrival in islice(rows, at, None):
            users = _up_to(self.until, sequence, _after(self.start, sequence, user_records(key, data)))
            taken, size = had + len(sub), _size(data, users)
            if taken and (taken + len(users) > max_records or self.delivered + size > max_bytes):
                break
            taken_apart.partition_key += [user.partition_key for user in users]
            taken_apart.data += [user.data for user in users]
            taken_apart.sequence += [sequence] * len(users)
            taken_apart.arrival_millis += [arrival] * len(users)
            sub += [user.sub for user in users]
            self.size += len(data)
            self.delivered += size
            end += 1
        if sub:
            self.columns.parts.append(RecordSlice(taken_apart, sub))
        return end


def _size(data: bytes, users: list[UserRecord]) -> int:
    """Of a Kinesis record as it is delivered."""
    if len(users) == 1 and users[0].data is data:
        return len(data)
    return sum(len(user.data) + len(user.partition_key) for user in users)


def _after(start: Position, sequence: str, users: list[UserRecord]) -> list[UserRecord]:
    """The user records of a Kinesis record; after `start` only, if that lies inside of it.

    One that is delivered whole comes unless `start` is exactly its own position. Otherwise somebody has taken it apart, and may owe the rest.
    """
    if start.sub is None or sequence != start.sequence:
        return users
    return [user for user in users if user.sub > start.sub or (isinstance(user, WholeRecord) and user.sub != start.sub)]


def _up_to(until: Position | None, sequence: str, users: list[UserRecord]) -> list[UserRecord]:
    """The user records of a Kinesis record; up to `until` only, if that lies inside of it."""
    if until is None or until.sub is None or sequence != until.sequence:
        return users
    return [user for user in users if user.sub <= until.sub]
