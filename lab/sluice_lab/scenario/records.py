"""Numbered user records, and the Kinesis records that carry them: one each, or several in an aggregate like the KPL's. Pure.

The account at the end needs the numbers: each must be delivered exactly once, whatever happens in between.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# github.com/awslabs/amazon-kinesis-producer, aggregation-format.md: magic, protobuf AggregatedRecord, MD5 of the latter.
MAGIC = bytes.fromhex("f3899ac2")
AGGREGATE = 8  # user records in an aggregate
EVERY = 3  # one Kinesis record of three is an aggregate
KEYS = 16  # hash keys in use, evenly spread: each shard of a stream of four has four of them
HASH_KEYS = 2**128


@dataclass(frozen=True, slots=True)
class NumberedRecord:
    """A user record; `hash_key` decides its shard."""

    n: int
    hash_key: int

    @property
    def key(self) -> str:
        """The partition key."""
        return f"sensor-{self.n % 97:02d}"

    @property
    def data(self) -> bytes:
        """The payload: JSON with the number."""
        return json.dumps({"n": self.n, "celsius": 15 + self.n % 13}).encode()


@dataclass(frozen=True, slots=True)
class KinesisRecord:
    """One Kinesis record: a user record, or an aggregate of several."""

    user_records: tuple[NumberedRecord, ...]

    @property
    def aggregated(self) -> bool:
        """Whether it is an aggregate."""
        return len(self.user_records) > 1

    def entry(self) -> dict[str, Any]:
        """The entry for PutRecords."""
        first = self.user_records[0]
        key, data = ("a", aggregate(self.user_records)) if self.aggregated else (first.key, first.data)
        return {"PartitionKey": key, "ExplicitHashKey": str(first.hash_key), "Data": data}


def hash_keys(low: int = 0, high: int = HASH_KEYS - 1) -> list[int]:
    """The hash keys in use within a range, bounds included."""
    middles = ((2 * number + 1) * HASH_KEYS // (2 * KEYS) for number in range(KEYS))
    return [key for key in middles if low <= key <= high]


def series(numbers: Iterator[int], hash_keys: Sequence[int], count: int) -> list[KinesisRecord]:
    """The next `count` Kinesis records, on the hash keys in turn. Every third and the last are aggregates."""
    sizes = [AGGREGATE if left % EVERY == 1 else 1 for left in range(count, 0, -1)]
    targets = itertools.islice(itertools.cycle(hash_keys), count)
    return [_packed(numbers, size, target) for size, target in zip(sizes, targets, strict=True)]


def aggregate(users: Iterable[NumberedRecord]) -> bytes:
    """NumberedRecord records in one Kinesis record, as the Kinesis Producer Library writes them."""
    kept = list(users)
    keys = sorted({user.key for user in kept})
    hashes = sorted({str(user.hash_key) for user in kept})
    body = b"".join([_bytes(1, key.encode()) for key in keys] + [_bytes(2, key.encode()) for key in hashes])
    for user in kept:
        indices = _number(1, keys.index(user.key)) + _number(2, hashes.index(str(user.hash_key)))
        body += _bytes(3, indices + _bytes(3, user.data))
    return MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest()


def _packed(numbers: Iterator[int], size: int, hash_key: int) -> KinesisRecord:
    return KinesisRecord(tuple(NumberedRecord(n, hash_key) for n in itertools.islice(numbers, size)))


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
