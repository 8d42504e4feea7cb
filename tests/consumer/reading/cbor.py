"""Replies in CBOR as services may write them: made by hand from RFC 8949, not by the library that reads them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sluice_consumer.kinesis.client import Records

UNSIGNED, BYTES, TEXT, ARRAY, MAP, TAG = 0, 2, 3, 4, 5, 6


def head(major: int, size: int) -> bytes:
    """Type and length of an item, as short as can be (RFC 8949, 3)."""
    for limit, low, form in ((24, size, ""), (1 << 8, 24, ">B"), (1 << 16, 25, ">H"), (1 << 32, 26, ">I"), (1 << 64, 27, ">Q")):
        if size < limit:
            return bytes([major << 5 | low]) + (struct.pack(form, size) if form else b"")
    raise ValueError(size)


def text(value: str) -> bytes:
    return head(TEXT, len(value.encode())) + value.encode()


def pieces(value: str) -> bytes:
    """The same text in two chunks of indefinite length."""
    return b"\x7f" + text(value[:2]) + text(value[2:]) + b"\xff"


def millis(value: int) -> bytes:
    """A time as the service is thought to write it: milliseconds."""
    return head(UNSIGNED, value)


def tagged_millis(value: int) -> bytes:
    """As the Java SDK writes times: milliseconds, tagged as seconds."""
    return head(TAG, 1) + head(UNSIGNED, value)


def seconds(value: int) -> bytes:
    """As RFC 8949 has it: seconds, here a double, with tag 1."""
    return head(TAG, 1) + b"\xfb" + struct.pack(">d", value / 1000)


def untagged_seconds(value: int) -> bytes:
    """The JSON protocol's number."""
    return b"\xfb" + struct.pack(">d", value / 1000)


@dataclass(frozen=True)
class Style:
    """One way to write a reply.

    Attributes:
        order: of a record's keys.
        indefinite: arrays and maps say at their end that they end.
        last: whether `Records` is the last key, else the first.
    """

    time: Callable[[int], bytes] = millis
    order: tuple[str, ...] = ("SequenceNumber", "ApproximateArrivalTimestamp", "Data", "PartitionKey")
    indefinite: bool = False
    last: bool = True
    key: Callable[[str], bytes] = text
    extra: dict[str, bytes] = field(default_factory=dict)

    def pairs(self, pairs: Sequence[tuple[str, bytes]]) -> bytes:
        inside = b"".join(text(key) + value for key, value in pairs)
        return b"\xbf" + inside + b"\xff" if self.indefinite else head(MAP, len(pairs)) + inside

    def record(self, sequence: str, key: str, data: bytes, arrival: int) -> bytes:
        values = {
            "SequenceNumber": text(sequence),
            "PartitionKey": self.key(key),
            "Data": head(BYTES, len(data)) + data,
            "ApproximateArrivalTimestamp": self.time(arrival),
        } | self.extra
        return self.pairs([(name, values[name]) for name in (*self.order, *self.extra)])

    def reply(self, records: Records, iterator: str = "next", behind: int = 12) -> bytes:
        rows = zip(records.sequence, records.partition_key, records.data, records.arrival_millis, strict=True)
        inside = b"".join(self.record(*row) for row in rows)
        array = b"\x9f" + inside + b"\xff" if self.indefinite else head(ARRAY, len(records)) + inside
        told = [("NextShardIterator", text(iterator)), ("MillisBehindLatest", head(UNSIGNED, behind))]
        return self.pairs([*told, ("Records", array)] if self.last else [("Records", array), *told])
