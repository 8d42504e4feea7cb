"""KPL aggregates: one Kinesis record that holds many user records. They are taken apart as KCL's `AggregatorUtil` does it.

Format (KPL, aggregation-format.md): magic, a protobuf `AggregatedRecord` {1: partition keys, 2: explicit hash keys, 3: records {1: index of the key,
2: index of the hash key, 3: data, 4: tags {1: key, 2: value}}}, MD5 of the protobuf. What KCL does not take for one is a plain record. That is a
wrong digest, a message that protobuf for Java refuses (`protobuf.py`), a record without key index or data, or a tag without key.

**An aggregate that would become too large is delivered whole.** User records share partition keys by index: one record of a megabyte may expand to
gigabytes of rows. `MOST_EXPANDED` says what is too large. That depends on the record's bytes alone, and the constants never change: a range that was
bound counts by them, and every replay has to come to the same number.

**What KCL drops is delivered.** KCL reads an aggregate up to a user record whose key or explicit hash key is not in its table, and drops the rest.
If a partition key is missing, the aggregate is delivered whole here. Explicit hash keys are not looked at.

**User records outside the shard's hash keys are delivered.** KCL drops the *whole* aggregate when one user record in it hashes to another shard
(AggregatorUtil.deaggregate). It trusts that the KPL puts it again when it sees that its shard map was stale. Other aggregators never put it again,
and records are lost (awslabs/kinesis-aggregation#11). Newer KPLs put only those again that are outside (amazon-kinesis-producer PR 576, retrier.cc),
and the others are lost as well. Delivering costs, after a reshard, what a producer's retry always may: a repeated record.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from sluice_consumer.shards.protobuf import Malformed, fields, int32, text

MAGIC = b"\xf3\x89\x9a\xc2"
DIGEST = 16
KEY, RECORD = 1 << 3 | 2, 3 << 3 | 2  # tags of an aggregate: field number and wire type; any other is unknown, and stepped over
INDEX, DATA, TAG = 1 << 3, 3 << 3 | 2, 4 << 3 | 2  # of a record
TAG_KEY = 1 << 3 | 2  # of a tag
# What the user records of one aggregate may come to: data, keys in UTF-8, and so much for a row's other columns. So every aggregate of a megabyte
# whose keys are ASCII and no longer than Kinesis takes (256) is taken apart. Part of the protocol: not to be changed.
MOST_EXPANDED, ROW = 2**26, 128


class UserRecord(NamedTuple):
    """A user record of an aggregate; `sub` counts from 0 within it."""

    sub: int
    partition_key: str
    data: bytes


class WholeRecord(UserRecord):
    """A Kinesis record that is its own only user record. An aggregate that is delivered whole has the `sub` of its last."""

    __slots__ = ()


def user_records(partition_key: str, data: bytes) -> list[UserRecord]:
    """The user records of a Kinesis record, in order; a plain one is its own only user record, an aggregate may be empty, or too large."""
    if data.startswith(MAGIC) and len(data) > len(MAGIC) + DIGEST:
        body = data[len(MAGIC) : -DIGEST]
        if hashlib.md5(body, usedforsecurity=False).digest() == data[-DIGEST:]:
            try:
                keys, records = _parsed(body)
            except Malformed:
                return [WholeRecord(0, partition_key, data)]
            if not all(0 <= index < len(keys) for index, _ in records) or _too_large(keys, records, len(body)):
                return [WholeRecord(len(records) - 1, partition_key, data)]
            return [UserRecord(sub, keys[index], user) for sub, (index, user) in enumerate(records)]
    return [WholeRecord(0, partition_key, data)]


def _too_large(keys: list[str], records: list[tuple[int, bytes]], size: int) -> bool:
    """Counted only where it might be: for nearly all aggregates a bound says that it is not."""
    if len(records) * (ROW + 4 * max(map(len, keys), default=0)) + size <= MOST_EXPANDED:
        return False
    lengths = [len(key.encode()) for key in keys]
    return sum(lengths[index] + len(data) + ROW for index, data in records) > MOST_EXPANDED


def _parsed(body: bytes) -> tuple[list[str], list[tuple[int, bytes]]]:
    """Partition keys, and for each user record the index of its key and its data."""
    keys: list[str] = []
    records: list[tuple[int, bytes]] = []
    for tag, value in fields(body, 0, len(body)):
        if tag == RECORD:
            records.append(_record(body, value))
        elif tag == KEY:
            keys.append(text(body[value]))
    return keys, records


def _record(body: bytes, where: slice) -> tuple[int, bytes]:
    index = data = None
    for tag, value in fields(body, where.start, where.stop, 1):
        if tag == INDEX:
            index = value
        elif tag == DATA:
            data = value
        elif tag == TAG:
            _check_tag(body, value)
    if index is None or data is None:
        raise Malformed("a user record has a key and data")
    return int32(index), body[data]


def _check_tag(body: bytes, where: slice) -> None:
    if TAG_KEY not in [tag for tag, _ in fields(body, where.start, where.stop, 2)]:
        raise Malformed("a tag has a key")
