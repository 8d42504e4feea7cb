"""The in-memory fake of `kinesis.http` over a `MemoryStream`, deterministic, with every answer that a reader has to expect.

Services differ in what they are free to do; `FakeBehaviour` names each freedom. Nothing is paced here, and throttling is what the
real client makes of it after its deadline: a `ServiceUnavailable`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_checkpoints.position import Position
from sluice_consumer.kinesis.client import MAX_RECORDS_PER_CALL, IteratorExpired, Page, Records, ShardNotFound, iterator_type
from sluice_lab.fakes.stream import MemoryRecord, MemoryShard, MemoryStream

ITERATOR_MILLIS = 300_000  # API reference, GetShardIterator: five minutes
PAGE_BYTES = 10 * 1024 * 1024  # API reference, GetRecords


@dataclass(frozen=True, slots=True)
class FakeBehaviour:
    """What a service may do one way or the other.

    Attributes:
        child_shards: the end of a shard comes with ChildShards (kinesalite: without).
        end_with_records: the reply with a closed shard's last records is its end (kinesis-local); else one more empty reply is (kinesalite).
        empty_pages: so many empty replies come after every new iterator, far from the tip (sparse shards).
        page_records, page_bytes: how much one reply holds at most.
        from_newest: MillisBehindLatest is the age of the newest record beside the last one given, not beside now (kinesis-local).
    """

    child_shards: bool = True
    end_with_records: bool = False
    empty_pages: int = 0
    page_records: int = MAX_RECORDS_PER_CALL
    page_bytes: int = PAGE_BYTES
    from_newest: bool = False


@dataclass(frozen=True, slots=True)
class FakeIterator:
    """The position of a shard iterator: everything after record `number` (-1: everything there is), `empty` empty replies away."""

    created_millis: int
    shard_id: str
    number: int
    issued_millis: int
    empty: int = 0

    def token(self) -> str:
        """The iterator as the caller sees it."""
        return json.dumps(astuple(self))


class MemoryKinesis:
    """Implements `KinesisClient`.

    Attributes:
        behaviour: may be changed at any time.
        calls: names of the calls made, for assertions on how many there were.
    """

    def __init__(self, stream: MemoryStream, behaviour: FakeBehaviour | None = None) -> None:
        self.stream, self.behaviour = stream, behaviour or FakeBehaviour()
        self.calls: list[str] = []
        self._failures: list[Exception] = []

    def fail(self, *errors: Exception) -> None:
        """Makes the next calls raise these, in this order."""
        self._failures += errors

    def get_iterator(self, shard_id: str, position: Position) -> str:
        self._called("GetShardIterator")
        shard = self._shard(shard_id)
        index = self._index(shard, position)
        number = shard.numbers[index - 1] if index else -1
        overtaken = position.sequence is not None and int(position.sequence) < shard.trimmed
        fresh = FakeIterator(self.stream.created_millis, shard_id, number, self.stream.now(), self.behaviour.empty_pages + overtaken)
        return fresh.token()

    def get_records(self, shard_id: str, iterator: str, limit: int) -> Page:
        self._called("GetRecords")
        if not 1 <= limit <= MAX_RECORDS_PER_CALL:
            raise Refused(f"Limit {limit} is not in 1..{MAX_RECORDS_PER_CALL}")
        at = FakeIterator(*json.loads(iterator))
        if self.stream.now() - at.issued_millis > ITERATOR_MILLIS:
            raise IteratorExpired(f"iterator of {shard_id} expired")
        if at.created_millis != self.stream.created_millis:
            raise ShardNotFound(f"{shard_id}: the iterator is of another stream")
        return self._page(self._shard(at.shard_id), at, limit)

    def _page(self, shard: MemoryShard, at: FakeIterator, limit: int) -> Page:
        now = self.stream.now()
        start = shard.after(str(at.number)) if at.number >= 0 else 0
        taken = [] if at.empty else self._fitting(shard.records[start:], min(limit, self.behaviour.page_records))
        left = len(shard.records) - start - len(taken)
        after = replace(at, number=int(taken[-1].sequence) if taken else at.number, issued_millis=now, empty=max(0, at.empty - 1))
        ended = shard.shard.closed and not left and not at.empty and (self.behaviour.end_with_records or not taken)
        return Page(
            records=_columns(taken),
            next_iterator=None if ended else after.token(),
            behind_millis=self._behind(shard, left, taken) if left else self.stream.retention_millis if at.empty else 0,
            children=self.stream.list_shards().children_of(at.shard_id) if ended and self.behaviour.child_shards else None,
            server_millis=now // 1000 * 1000,
        )

    def _behind(self, shard: MemoryShard, left: int, taken: list[MemoryRecord]) -> int:
        if self.behaviour.from_newest and taken:
            return shard.records[-1].arrival_millis - taken[-1].arrival_millis
        return max(1, self.stream.now() - shard.records[-left].arrival_millis)

    def _fitting(self, records: Sequence[MemoryRecord], limit: int) -> list[MemoryRecord]:
        taken: list[MemoryRecord] = []
        size = 0
        for record in records[:limit]:
            size += len(record.data)
            if taken and size > self.behaviour.page_bytes:
                break
            taken.append(record)
        return taken

    def _index(self, shard: MemoryShard, position: Position) -> int:
        kind = iterator_type(position)["ShardIteratorType"]
        if position.millis is not None:
            if position.millis > self.stream.now():
                raise ServiceUnavailable(f"timestamp {position.millis} cannot be greater than the current one")
            return shard.from_millis(position.millis)
        if position.sequence is None:
            return 0
        if int(position.sequence) < int(shard.shard.starting_sequence):
            raise Refused(f"sequence number {position.sequence} is not of {shard.shard.id}")
        return shard.at(position.sequence) if kind == "AT_SEQUENCE_NUMBER" else shard.after(position.sequence)

    def _shard(self, shard_id: str) -> MemoryShard:
        if not self.stream.exists or shard_id not in self.stream.shards:
            raise ShardNotFound(f"{shard_id} in stream {self.stream.name} is not found")
        return self.stream.shards[shard_id]

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self._failures:
            raise self._failures.pop(0)


def _columns(records: Sequence[MemoryRecord]) -> Records:
    return Records(
        [r.sequence for r in records],
        [r.partition_key for r in records],
        [r.data for r in records],
        [r.arrival_millis for r in records],
    )
