"""KPL aggregates: one Kinesis record that holds many user records. Own varint walker, no protobuf dependency.

Format (KPL, aggregation-format.md): magic, a protobuf `AggregatedRecord` {1: partition keys, 2: explicit hash keys, 3: records {1: index of the
key, 2: index of the hash key, 3: data}}, MD5 of the protobuf. Whatever does not parse, or whose digest is wrong, is a plain record, as in KCL.

**An aggregate that would become too large is delivered whole.** User records share partition keys by index: one record of a megabyte may expand to
gigabytes of rows. `MOST_EXPANDED` says what is too large. That depends on the record's bytes alone, and the constants never change: a range that was
bound counts by them, and every replay has to come to the same number.

**User records outside the shard's hash keys are delivered.** KCL drops the *whole* aggregate when one user record in it hashes to another shard
(AggregatorUtil.deaggregate), trusting that the KPL puts it again when it sees that its shard map was stale. Other aggregators never put it
again: records are lost (awslabs/kinesis-aggregation#11), and newer KPLs put only those again that are outside (amazon-kinesis-producer PR 576,
retrier.cc): the others are lost as well. Delivering costs, after a reshard, what a producer's retry always may: a repeated record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = b"\xf3\x89\x9a\xc2"
DIGEST = 16
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
# What the user records of one aggregate may come to: data, keys in UTF-8, and so much for a row's other columns. So every aggregate of a megabyte
# whose keys are ASCII and no longer than Kinesis takes (256) is taken apart. Part of the protocol: not to be changed.
MOST_EXPANDED, ROW = 2**26, 128
MAX_VARINT_BITS = 63  # protobuf: at most ten bytes


class UserRecord(NamedTuple):
    """A user record of an aggregate; `sub` counts from 0 within it. An aggregate that is delivered whole has the `sub` of its last."""

    sub: int
    partition_key: str
    data: bytes


def user_records(partition_key: str, data: bytes) -> list[UserRecord]:
    """The user records of a Kinesis record, in order; a plain one is its own only user record, an aggregate may be empty, or too large."""
    if data.startswith(MAGIC) and len(data) > len(MAGIC) + DIGEST:
        body = data[len(MAGIC) : -DIGEST]
        if hashlib.md5(body, usedforsecurity=False).digest() == data[-DIGEST:]:
            try:
                keys, found = _parsed(body)
                if _too_large(keys, found, len(body)):
                    return [UserRecord(len(found) - 1, partition_key, data)]
                return [UserRecord(sub, keys[index], user) for sub, (index, user) in enumerate(found)]
            except (IndexError, ValueError):
                pass
    return [UserRecord(0, partition_key, data)]


def _too_large(keys: list[str], found: list[tuple[int, bytes]], size: int) -> bool:
    """Counted only where it might be: for nearly all aggregates a bound says that it is not."""
    if len(found) * (ROW + 4 * max(map(len, keys), default=0)) + size <= MOST_EXPANDED:
        return False
    lengths = [len(key.encode()) for key in keys]
    return sum(lengths[index] + len(data) + ROW for index, data in found) > MOST_EXPANDED


def _parsed(body: bytes) -> tuple[list[str], list[tuple[int, bytes]]]:
    """Partition keys, and for each user record the index of its key and its data."""
    keys: list[str] = []
    found: list[tuple[int, bytes]] = []
    for number, value in _fields(body, 0, len(body)):
        if number == 3 and isinstance(value, slice):
            found.append(_record(body, value))
        elif number == 1 and isinstance(value, slice):
            keys.append(body[value].decode())
    return keys, found


def _record(body: bytes, where: slice) -> tuple[int, bytes]:
    index = data = None
    for number, value in _fields(body, where.start, where.stop):
        if number == 1 and isinstance(value, int):
            index = value
        elif number == 3 and isinstance(value, slice):
            data = value
    if index is None or data is None:
        raise ValueError("a user record has a key and data")
    return index, body[data]


def _fields(body: bytes, at: int, stop: int) -> Iterator[tuple[int, int | slice]]:
    """Field numbers and values of one message in body[at:stop]: varints as numbers, everything else as where its bytes are."""
    while at < stop:
        tag, at = _varint(body, at)
        kind = tag & 7
        size, at = _varint(body, at) if kind in {VARINT, LENGTH} else (FIXED_SIZES.get(kind, stop), at)
        if kind == VARINT:
            yield tag >> 3, size
            continue
        if at + size > stop:
            raise ValueError(f"a field of wire type {kind} and size {size} does not fit")
        yield tag >> 3, slice(at, at + size)
        at += size
    if at > stop:
        raise ValueError("a number does not fit")


def _varint(body: bytes, at: int) -> tuple[int, int]:
    byte = body[at]
    if byte < 0x80:
        return byte, at + 1
    value = shift = 0
    while byte >= 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift > MAX_VARINT_BITS:
            raise ValueError("a number of more than ten bytes")
        byte = body[at]
    return value | byte << shift, at + 1
