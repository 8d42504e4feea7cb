"""Encodes KPL aggregates."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sluice_consumer.shards.aggregation import MAGIC


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field_bytes(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def seal(body: bytes) -> bytes:
    """The envelope of an aggregate: magic in front, MD5 behind."""
    return MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest()


def aggregate(users: Sequence[tuple[str, bytes]]) -> bytes:
    """An aggregate as the KPL makes it, of (partition key, data)."""
    keys = sorted({key for key, _ in users})
    body = b"".join(field_bytes(1, key.encode()) for key in keys)
    return seal(body + b"".join(field_bytes(3, varint(8) + varint(keys.index(key)) + field_bytes(3, data)) for key, data in users))


def empties(count: int, key: bytes) -> bytes:
    return seal(field_bytes(1, key) + b"\x1a\x04\x08\x00\x1a\x00" * count)
