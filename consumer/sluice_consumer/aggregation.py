"""KPL aggregates: one Kinesis record that holds many user records. Own varint walker, no protobuf dependency.

Format (KPL, aggregation-format.md): magic, a protobuf `AggregatedRecord` {1: partition keys, 2: explicit hash keys, 3: records {1: index of the
key, 2: index of the hash key, 3: data}}, MD5 of the protobuf. Whatever does not parse or whose digest is wrong is a plain record, as KCL has it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = b"\xf3\x89\x9a\xc2"
DIGEST = 16
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


class UserRecord(NamedTuple):
    """A user record of an aggregate; `sub` counts from 0 within it."""

    sub: int
    partition_key: str
    data: bytes


def user_records(partition_key: str, data: bytes) -> list[UserRecord]:
    """The user records of a Kinesis record; a plain one is its own only user record."""
    if data[:4] == MAGIC and len(data) > len(MAGIC) + DIGEST:
        body = data[4:-DIGEST]
        if hashlib.md5(body, usedforsecurity=False).digest() == data[-DIGEST:]:
            try:
                return _aggregate(body)
            except (IndexError, ValueError):
                pass
    return [UserRecord(0, partition_key, data)]


def _aggregate(body: bytes) -> list[UserRecord]:
    keys: list[str] = []
    found: list[tuple[int, bytes]] = []
    for number, value in _fields(body):
        if number == 1 and isinstance(value, bytes):
            keys.append(value.decode())
        elif number == 3 and isinstance(value, bytes):
            found.append(_record(value))
    if not found:
        raise ValueError("an aggregate without records")
    return [UserRecord(sub, keys[index], data) for sub, (index, data) in enumerate(found)]


def _record(body: bytes) -> tuple[int, bytes]:
    index, data = None, b""
    for number, value in _fields(body):
        if number == 1 and isinstance(value, int):
            index = value
        elif number == 3 and isinstance(value, bytes):
            data = value
    if index is None:
        raise ValueError("a user record without a key")
    return index, data


def _fields(body: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = _varint(body, at)
            yield tag >> 3, value
            continue
        size, at = _varint(body, at) if kind == LENGTH else ({FIXED64: 8, FIXED32: 4}.get(kind, -1), at)
        if size < 0 or at + size > len(body):
            raise ValueError(f"field of wire type {kind} and size {size} does not fit")
        yield tag >> 3, body[at : at + size]
        at += size


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
