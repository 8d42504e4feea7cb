"""Ranges of a shard: a new one from a position on, or exactly one that was bound (docs/protocol.md, "Batches" 2, 3; "Resharding"; "Retention").

Ranges end on whole Kinesis records. A range is held in memory until it is bound: `Limits.max_bytes` and one reply more bound that memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_checkpoints.model import END, Child, Position
from sluice_checkpoints.stream import ShardList, StreamCatalog, StreamIdentity
from sluice_consumer.aggregation import user_records
from sluice_consumer.kinesis import MAX_RECORDS_PER_CALL, IteratorExpired, KinesisClient, Page, Records, ShardNotFound

TIMESTAMP_SLACK_MILLIS = 120_000  # an idle shard's TIMESTAMP follows the service's clock at this distance


class EndUnknown(SluiceError):
    """The service says that a shard has ended, and neither its reply nor ListShards names what follows: an error, not an end."""


class ReplayShort(SluiceError):
    """The stream no longer holds all of a range that was bound: records are lost, and nothing skips them silently."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one range may hold, counted from its first record: user records, and bytes of payload."""

    max_records: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a shard is read from; `read_to_millis` is the service's time up to which it was read before (0: unknown)."""

    shard_id: str
    position: Position
    read_to_millis: int = 0


@dataclass(frozen=True, slots=True)
class BoundRange:
    """A range as its row has it: (start, end], its first Kinesis record and its number of user records."""

    shard_id: str
    start: Position
    end: Position
    first: str | None
    records: int


@dataclass(slots=True)
class Columns:
    """User records in columns of one length, in the order of the shard."""

    partition_key: list[str] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    sequence: list[str] = field(default_factory=list)
    sub: list[int] = field(default_factory=list)
    arrival_millis: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sequence)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A range in memory. `behind_millis` and `read_to_millis` are of its end; `children` come with END only."""

    shard_id: str
    start: Position
    end: Position
    columns: Columns
    first: str | None = None
    bytes: int = 0
    behind_millis: int = 0
    read_to_millis: int = 0
    children: tuple[Child, ...] | None = None
    possible_loss: str | None = None

    @property
    def records(self) -> int:
        """User records in the range."""
        return len(self.columns)


@dataclass(slots=True)
class _Cursor:
    """What was taken so far; `position` is where a new iterator would go on."""

    shard_id: str
    start: Position
    position: Position
    columns: Columns = field(default_factory=Columns)
    first: str | None = None
    bytes: int = 0

    def take(self, records: Records, i: int) -> None:
        """Takes the user records of one Kinesis record, without those that `start` says are done."""
        sequence = records.sequence[i]
        done = self.start.sub if self.start.sub is not None and sequence == self.start.sequence else -1
        columns = self.columns
        for sub, key, data in user_records(records.partition_key[i], records.data[i]):
            if sub <= done:
                continue
            columns.partition_key.append(key)
            columns.data.append(data)
            columns.sequence.append(sequence)
            columns.sub.append(sub)
            columns.arrival_millis.append(records.arrival_millis[i])
            self.bytes += len(data)
            self.first = self.first or sequence
        self.position = Position.after(sequence)

    def full(self, limits: Limits) -> bool:
        """Whether a limit is reached."""
        return len(self.columns) >= limits.max_records or self.bytes >= limits.max_bytes


class Reader:
    """Reads the shards of one stream. Thread safe, as its ports are."""

    def __init__(self, client: KinesisClient, catalog: StreamCatalog, identity: StreamIdentity) -> None:
        self._client, self._catalog, self._identity = client, catalog, identity

    def fetch(self, place: Place, limits: Limits) -> Fetched:
        """A new range: to a limit, to the tip, or to the end of the shard. Without any record it goes on to the tip or the end.

        Raises:
            EndUnknown: the shard ended and its children are unknown. ShardNotFound: the service does not know a shard that it lists.
            Refused, ServiceUnavailable: see `KinesisClient`.
        """
        cursor = _Cursor(place.shard_id, place.position, place.position)
        try:
            return self._fetch(cursor, place, limits)
        except ShardNotFound:
            return self._expired(cursor, place)

    def _fetch(self, cursor: _Cursor, place: Place, limits: Limits) -> Fetched:
        iterator: str | None = self._client.get_iterator(cursor.shard_id, cursor.position)
        loss: str | None = None
        while iterator is not None:
            page, iterator = self._page(cursor, iterator, min(MAX_RECORDS_PER_CALL, limits.max_records))
            loss = loss or self._overtaken(place, page)
            for i in range(len(page.records)):
                cursor.take(page.records, i)
                if cursor.full(limits) and i + 1 < len(page.records):
                    return self._cut(cursor, page, page.records.arrival_millis[i], loss)
            if iterator is None:
                return self._ended(cursor, page, loss)
            if page.behind_millis == 0 or cursor.full(limits):
                return self._cut(cursor, page, page.server_millis - page.behind_millis, loss)
        raise AssertionError("unreachable: the loop returns when there is no further iterator")

    def _page(self, cursor: _Cursor, iterator: str, limit: int) -> tuple[Page, str | None]:
        try:
            page = self._client.get_records(cursor.shard_id, iterator, limit)
        except IteratorExpired:
            renewed = self._client.get_iterator(cursor.shard_id, cursor.position)
            page = self._client.get_records(cursor.shard_id, renewed, limit)
        return page, page.next_iterator

    def _cut(self, cursor: _Cursor, page: Page, read_to: int, loss: str | None) -> Fetched:
        end = cursor.position
        if end.millis is not None and page.behind_millis == 0:
            end = Position.timestamp(max(end.millis, page.server_millis - TIMESTAMP_SLACK_MILLIS))
        return self._fetched(cursor, end, page.behind_millis, read_to, (None, loss))

    def _ended(self, cursor: _Cursor, page: Page, loss: str | None) -> Fetched:
        children = page.children or self._catalog.list_shards().children_of(cursor.shard_id)
        if not children:
            raise EndUnknown(f"{cursor.shard_id} has no next iterator, but neither its reply nor ListShards names a child; it is asked again")
        return self._fetched(cursor, END, 0, page.server_millis, (children, loss))

    def _expired(self, cursor: _Cursor, place: Place) -> Fetched:
        """ResourceNotFound: only with a complete list of the same stream that no longer has the shard is it an end, and a loss."""
        identity, listed = self._catalog.describe(), self._catalog.list_shards()
        self._same_stream(identity)
        if listed.get(cursor.shard_id) is not None:
            raise ShardNotFound(f"{cursor.shard_id} is listed, but the service does not find it at {cursor.position}")
        loss = f"the shard expired before it was read to its end; unread from {cursor.position}, last read up to {place.read_to_millis} (epoch ms)"
        return self._fetched(cursor, END, 0, place.read_to_millis, (_children(listed, cursor.shard_id), loss))

    def _same_stream(self, identity: StreamIdentity) -> None:
        if (identity.arn, identity.created_millis) != (self._identity.arn, self._identity.created_millis):
            raise Refused(f"stream {identity.name} was deleted and made again: the positions in this table are of another stream")

    def _overtaken(self, place: Place, page: Page) -> str | None:
        age = page.server_millis - place.read_to_millis
        if not place.read_to_millis or age <= self._identity.retention_millis:
            return None
        return f"last read {age // 1000} s ago, longer than the retention of {self._identity.retention_millis // 1000} s: records may have expired"

    @staticmethod
    def _fetched(cursor: _Cursor, end: Position, behind: int, read_to: int, rest: tuple[tuple[Child, ...] | None, str | None]) -> Fetched:
        children, loss = rest
        return Fetched(cursor.shard_id, cursor.start, end, cursor.columns, cursor.first, cursor.bytes, behind, read_to, children, loss)

    def replay(self, bound: BoundRange) -> Fetched:
        """Exactly the user records in (start, end].

        Raises:
            ReplayShort: the stream does not give `records` of them, or does not meet `end`.
        """
        cursor = _Cursor(bound.shard_id, bound.start, bound.start)
        if bound.first is not None:
            self._replay(cursor, bound)
        if len(cursor.columns) != bound.records:
            raise ReplayShort(f"{bound.shard_id}: {len(cursor.columns)} of {bound.records} records from {bound.first} to {bound.end} are left")
        return Fetched(bound.shard_id, bound.start, bound.end, cursor.columns, cursor.first, cursor.bytes)

    def _replay(self, cursor: _Cursor, bound: BoundRange) -> None:
        at_first = Position("AFTER", sequence=bound.first, sub=-1)  # with a `sub` the iterator starts at the record itself
        cursor.position = at_first
        iterator: str | None = self._client.get_iterator(bound.shard_id, at_first)
        while iterator is not None:
            page, iterator = self._page(cursor, iterator, MAX_RECORDS_PER_CALL)
            for i, sequence in enumerate(page.records.sequence):
                if bound.end.sequence is not None and int(sequence) > int(bound.end.sequence):
                    return
                cursor.take(page.records, i)
                if sequence == bound.end.sequence:
                    return
            if page.behind_millis == 0 and not len(page.records) and bound.end != END:
                return


def _children(listed: ShardList, shard_id: str) -> tuple[Child, ...]:
    return listed.children_of(shard_id)
