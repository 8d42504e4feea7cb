"""A stream in memory, for tests and simulations: as a catalog here, with its data in `sluice_lab.fakes.kinesis`.

Deterministic: time is a function that the test owns, sequence numbers and shard ids are counted. It refuses what Kinesis refuses.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.stream.model import Shard, ShardList, ShardPlace, StreamIdentity, StreamNotFound

HASH_KEYS = 2**128
DAY_MILLIS = 86_400_000
# Real sequence numbers have 56 digits and start with 49; the sum of this and a counter has too.
FIRST_SEQUENCE = 496 * 10**53


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A Kinesis record as it was put."""

    sequence: str
    partition_key: str
    data: bytes
    arrival_millis: int


@dataclass
class MemoryShard:
    """A shard and what it holds; `number` of `records[i]` is `numbers[i]`, growing."""

    shard: Shard
    records: list[MemoryRecord] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    trimmed: int = -1

    def after(self, sequence: str) -> int:
        """Index of the first record after a sequence number."""
        return bisect_right(self.numbers, int(sequence))

    def at(self, sequence: str) -> int:
        """Index of the first record at or after a sequence number."""
        return bisect_left(self.numbers, int(sequence))

    def from_millis(self, millis: int) -> int:
        """Index of the first record that arrived at or after a time."""
        return next((i for i, r in enumerate(self.records) if r.arrival_millis >= millis), len(self.records))

    def trim(self, count: int) -> None:
        """Forgets the oldest `count` records."""
        if count:
            self.trimmed = self.numbers[count - 1]
            del self.records[:count], self.numbers[:count]


class MemoryStream:
    """A Kinesis stream with its shards and records. Implements `PositionCatalog` and `RecentRecords`.

    Attributes:
        now: the service's clock, epoch milliseconds.
        shards: by id, in the order they were made; expired ones are gone.
        exists: set it to False to delete the stream.
    """

    def __init__(self, name: str, shards: int = 1, now: Callable[[], int] = lambda: 1_700_000_000_000) -> None:
        self.name, self.now = name, now
        self.retention_millis = DAY_MILLIS
        self.exists = True
        self._next_number = FIRST_SEQUENCE
        self._start(shards)

    def _start(self, count: int) -> None:
        self.created_millis = self.now()
        self.shards: dict[str, MemoryShard] = {}
        self._next_shard = 0
        bounds = [HASH_KEYS * i // count for i in range(count + 1)]
        for low, high in pairwise(bounds):
            self._open((), low, high - 1)

    def describe(self) -> StreamIdentity:
        self._check_exists()
        arn = f"arn:aws:kinesis:us-east-1:000000000000:stream/{self.name}"
        return StreamIdentity(self.name, arn, self.created_millis, self.retention_millis, "ACTIVE")

    def list_shards(self) -> ShardList:
        """See `StreamCatalog.list_shards`. As the HTTP Date, the time is in whole seconds."""
        self._check_exists()
        return ShardList(tuple(shard.shard for shard in self.shards.values()), self.now() // 1000 * 1000)

    def disowned(self, places: Iterable[ShardPlace]) -> dict[ShardPlace, str]:
        """See `PositionCatalog.disowned`. A real number names its shard and the shard's creation time; here the range of issued numbers decides."""
        found = ((place, self.shards.get(place[0])) for place in places)
        return {place: f"{place[1]} is not of {place[0]}" for place, shard in found if shard and not self._issued(shard, int(place[1]))}

    def _issued(self, shard: MemoryShard, number: int) -> bool:
        first, ending = shard.shard.starting_sequence, shard.shard.ending_sequence
        last = self._next_number if ending is None else int(ending)
        others = (other.numbers for other in self.shards.values() if other is not shard)
        return int(first) <= number <= last and not any(number in numbers for numbers in others)

    def since(self, shard_ids: Iterable[str], millis: int) -> frozenset[str]:
        found = ((i, self.shards.get(i)) for i in shard_ids)
        return frozenset(i for i, shard in found if shard is not None and shard.from_millis(millis) < len(shard.records))

    def put(self, data: bytes, key: str = "key", hash_key: int | None = None) -> tuple[str, str]:
        """Puts a record into the open shard of its hash key; returns (shard id, sequence number)."""
        where = int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest()) if hash_key is None else hash_key
        shard = next(t for t in self._open_shards() if t.shard.starting_hash <= where <= t.shard.ending_hash)
        return shard.shard.id, self._append(shard, data, key)

    def put_in(self, shard_id: str, data: bytes, key: str = "key") -> str:
        """Puts a record into the given open shard; returns its sequence number."""
        shard = self.shards[shard_id]
        if shard.shard.closed:
            raise Refused(f"{shard_id} is closed")
        return self._append(shard, data, key)

    def split(self, shard_id: str, at: int | None = None) -> tuple[str, str]:
        """Closes a shard and opens two that share its hash keys (the second starts `at`, or in the middle)."""
        parent = self._close(shard_id)
        middle = (parent.starting_hash + parent.ending_hash + 1) // 2 if at is None else at
        if not parent.starting_hash < middle <= parent.ending_hash:
            raise Refused(f"{middle} is not inside the hash keys of {shard_id}")
        low = self._open((shard_id,), parent.starting_hash, middle - 1)
        return low, self._open((shard_id,), middle, parent.ending_hash)

    def merge(self, shard_id: str, adjacent: str) -> str:
        """Closes two neighbours and opens one over the hash keys of both."""
        low, high = sorted((self.shards[shard_id].shard, self.shards[adjacent].shard), key=lambda s: s.starting_hash)
        if low.ending_hash + 1 != high.starting_hash:
            raise Refused(f"{shard_id} and {adjacent} are not adjacent")
        self._close(low.id), self._close(high.id)
        return self._open((shard_id, adjacent), low.starting_hash, high.ending_hash)

    def trim(self, shard_id: str, count: int) -> None:
        """Retention takes the oldest `count` records of a shard."""
        self.shards[shard_id].trim(count)

    def expire_shard(self, shard_id: str) -> None:
        """Retention takes a closed shard as a whole: ListShards no longer knows it."""
        if not self.shards[shard_id].shard.closed:
            raise Refused(f"{shard_id} is open and cannot expire")
        del self.shards[shard_id]

    def expire(self) -> None:
        """Retention takes every record older than the retention period, by the clock."""
        for shard in self.shards.values():
            shard.trim(shard.from_millis(self.now() - self.retention_millis))

    def recreate(self, shards: int = 1) -> None:
        """Deletes the stream and makes another one under its name; shard ids repeat, sequence numbers do not."""
        self.exists = True
        self._start(shards)

    def _append(self, shard: MemoryShard, data: bytes, key: str) -> str:
        number = self._number()
        shard.records.append(MemoryRecord(str(number), key, data, self.now()))
        shard.numbers.append(number)
        return str(number)

    def _open_shards(self) -> list[MemoryShard]:
        return [shard for shard in self.shards.values() if not shard.shard.closed]

    def _open(self, parents: tuple[str, ...], low: int, high: int) -> str:
        shard_id = f"shardId-{self._next_shard:012d}"
        self._next_shard += 1
        self.shards[shard_id] = MemoryShard(Shard(shard_id, parents, low, high, str(self._number())))
        return shard_id

    def _close(self, shard_id: str) -> Shard:
        shard = self.shards[shard_id]
        if shard.shard.closed:
            raise Refused(f"{shard_id} is closed already")
        shard.shard = replace(shard.shard, ending_sequence=str(self._number()))
        return shard.shard

    def _number(self) -> int:
        self._next_number += 1
        return self._next_number

    def _check_exists(self) -> None:
        if not self.exists:
            raise StreamNotFound(f"stream {self.name} does not exist in us-east-1")
