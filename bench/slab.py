"""Records encoded once, so that a reply is a slice of bytes: the server then costs next to nothing beside what it measures."""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

FIRST_SEQUENCE = 49_590_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000
SEQUENCE_STEP = 1_048_583
JSON, CBOR = "application/x-amz-json-1.1", "application/x-amz-cbor-1.1"


@dataclass(frozen=True)
class Shape:
    """What the records of every shard look like, and when they arrive.

    Attributes:
        records: how many a shard has.
        size: mean payload, bytes; each is up to a quarter smaller or larger, for real ones differ.
        start_millis: arrival of the first, epoch milliseconds.
        rate: records a second and shard that arrive from then on; 0: all are there at the start.
        seed: 0: at even times; else each at any moment of its part of a second, and each shard at other ones.
    """

    records: int
    size: int
    start_millis: int
    rate: float = 0.0
    seed: int = 0

    def of(self, shard: int) -> Shape:
        """That of a shard."""
        return replace(self, seed=self.seed + shard) if self.seed else self

    def arrival_millis(self, index: int) -> int:
        if not self.rate:
            return self.start_millis
        late = random.Random(self.seed << 32 | index).random() if self.seed else 0.0  # noqa: S311 - arrivals
        return self.start_millis + round((index + late) / self.rate * 1000)

    def arrived(self, now_millis: int) -> int:
        if not self.rate:
            return self.records
        there = max(0, int((now_millis - self.start_millis) / 1000 * self.rate) + 1)
        return min(self.records, there - (there > 0 and self.arrival_millis(there - 1) > now_millis))


@dataclass(frozen=True)
class Slab:
    """All records of a shard in one encoding; record i is in body[ends[i]:ends[i + 1]].

    Attributes:
        payload: bytes of payload in the records before i, which limits count.
    """

    body: memoryview
    ends: tuple[int, ...]
    payload: tuple[int, ...]


def records(shape: Shape) -> Iterator[tuple[str, bytes, str, int]]:
    """Sequence number, payload, key and arrival of every record; the same for every shard and run."""
    dice = random.Random(1)  # noqa: S311 - payloads
    noise = dice.randbytes(shape.size * 64)
    spread = shape.size // 4
    for i in range(shape.records):
        size = shape.size + dice.randint(-spread, spread)
        at = dice.randrange(len(noise) - size)
        key = f"customer-{dice.randrange(1_000_000)}"
        yield str(FIRST_SEQUENCE + i * SEQUENCE_STEP), noise[at : at + size], key, shape.arrival_millis(i)


def json_record(sequence: str, data: bytes, key: str, arrival: int) -> bytes:
    shown = {"SequenceNumber": sequence, "ApproximateArrivalTimestamp": arrival / 1000, "Data": base64.b64encode(data).decode(), "PartitionKey": key}
    return json.dumps(shown, separators=(",", ":")).encode() + b","


def cbor_record(sequence: str, data: bytes, key: str, arrival: int) -> bytes:
    """One record: a map of four, as RFC 8949 has it."""
    return b"".join((
        b"\xa4\x6eSequenceNumber", _head(3, len(sequence)), sequence.encode(),
        b"\x78\x1bApproximateArrivalTimestamp\x1b", struct.pack(">Q", arrival),
        b"\x64Data", _head(2, len(data)), data,
        b"\x6cPartitionKey", _head(3, len(key)), key.encode(),
    ))  # fmt: skip


def _head(major: int, size: int) -> bytes:
    for limit, code, form in ((24, None, ""), (1 << 8, 24, ">B"), (1 << 16, 25, ">H"), (1 << 32, 26, ">I")):
        if size < limit:
            return bytes([major << 5 | size]) if code is None else bytes([major << 5 | code]) + struct.pack(form, size)
    raise ValueError(size)


ENCODERS = {JSON: json_record, CBOR: cbor_record}


def build(shape: Shape, codec: str) -> Slab:
    encode, parts, ends, payload = ENCODERS[codec], [], [0], [0]
    for record in records(shape):
        parts.append(encode(*record))
        ends.append(ends[-1] + len(parts[-1]))
        payload.append(payload[-1] + len(record[1]))
    return Slab(memoryview(b"".join(parts)), tuple(ends), tuple(payload))


def reply(slab: Slab, codec: str, part: tuple[int, int], tail: tuple[str, int]) -> list[bytes | memoryview]:
    """A GetRecords reply with records part[0] to part[1], the next iterator and milliseconds behind."""
    start, stop = part
    iterator, behind = tail
    if codec == JSON:
        records_ = slab.body[slab.ends[start] : slab.ends[stop] - (stop > start)]
        return [b'{"Records":[', records_, b'],"NextShardIterator":"%s","MillisBehindLatest":%d}' % (iterator.encode(), behind)]
    head = b"\xa3\x67Records" + _head(4, stop - start)
    told = b"\x71NextShardIterator" + _head(3, len(iterator)) + iterator.encode() + b"\x72MillisBehindLatest\x1b" + struct.pack(">Q", behind)
    return [head, slab.body[slab.ends[start] : slab.ends[stop]], told]
