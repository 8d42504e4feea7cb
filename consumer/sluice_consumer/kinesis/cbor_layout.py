"""The byte layout of the records of a CBOR reply, derived from the first of them. Pure.

A record is a map of text keys. Only payload and partition key differ in length from record to record. All else is a *segment* of known length between
them, most of whose bytes are the same in every record.

A record, from left to right (`=` the same in every record, `~` of one length, `.` of varying length)::

    map  SequenceNumber  56 digits  ApproximateArrivalTimestamp  8 bytes  Data  head and payload  PartitionKey  head and key  end
    ===  ==============  ~~~~~~~~~  ===========================  ~~~~~~~  ====  ................  ============  ............  ===
    |----------------------- segment before Data -----------------------------|                   |- before -|                |-|

Known are maps of definite or indefinite length with the same keys in the same order. Their values are text or bytes of definite length, or a time of
eight bytes (integer or double, tagged 1 or not).
"""

from __future__ import annotations

from dataclasses import dataclass, field

TEXT, BYTES = 3, 2
BREAK, INDEFINITE, TAGGED = 0xFF, 0xBF, 0xC1
TIMES = {b"\x1b": ">u8", b"\xfb": ">f8", b"\xc1\x1b": ">u8", b"\xc1\xfb": ">f8"}  # heads of a time, and how its eight bytes are read
TIME = "ApproximateArrivalTimestamp"
TYPES = {"SequenceNumber": TEXT, "EncryptionType": TEXT, "PartitionKey": TEXT, "Data": BYTES}
VARYING = {"PartitionKey", "Data"}  # in length; the others nearly never, and then the layout is not theirs
NEEDED = {"SequenceNumber", TIME, *VARYING}
# By the first byte of a string, how long its head is; 0: no string of definite length, or of 4 GiB and more, which are not known here.
HEADS = tuple({24: 2, 25: 3, 26: 5}.get(byte & 31, 1 if byte & 31 < 24 else 0) for byte in range(256))


@dataclass(frozen=True, slots=True)
class FixedSegment:
    """Bytes of known length, and the value of varying length behind them.

    Attributes:
        same, mask: the last of its bytes and, to make them a multiple of eight, some that come before it. Only where `mask` has ones are they the
            same in every record.
        fixed: values of one length inside: their offsets and lengths.
        varying: name of the value behind it; "": the record ends.
    """

    length: int
    same: bytes
    mask: bytes
    fixed: dict[str, tuple[int, int]]
    varying: str = ""


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """What every record looks like.

    Attributes:
        mark: what it begins with.
        time: how the eight bytes of its arrival are read (numpy's name of the type).
    """

    segments: tuple[FixedSegment, ...]
    mark: bytes
    time: str


@dataclass
class _Segment:
    """A segment on its way: its bytes, and for each whether it is the same in every record."""

    content: bytearray = field(default_factory=bytearray)
    same: bytearray = field(default_factory=bytearray)
    fixed: dict[str, tuple[int, int]] = field(default_factory=dict)

    def static(self, content: bytes) -> None:
        """Bytes of every record."""
        self.content += content
        self.same += b"\xff" * len(content)

    def value(self, name: str, length: int) -> None:
        """A value of one length."""
        self.fixed[name] = len(self.content), length
        self.content += bytes(length)
        self.same += bytes(length)

    def prefix(self) -> bytes:
        """What it begins with in every record."""
        return bytes(self.content[: self.same.find(0)] if 0 in self.same else self.content)

    def built(self, varying: str = "") -> FixedSegment:
        """What came together."""
        pad = bytes(-len(self.content) % 8)
        return FixedSegment(len(self.content), pad + self.content, pad + self.same, self.fixed, varying)


def layout(body: bytes, at: int) -> RecordLayout | None:
    """The layout of the record that begins at body[at]; None if it is not known.

    Raises:
        IndexError: the body ends inside of it.
    """
    if body[at] != INDEFINITE and not 0xA4 <= body[at] <= 0xA5:
        return None
    pairs = None if body[at] == INDEFINITE else body[at] & 31
    building, segments, values = [_Segment()], list[FixedSegment](), dict[str, bytes]()
    building[-1].static(body[at : at + 1])
    at += 1
    while pairs != len(values) and body[at] != BREAK:
        start, key_end = string(body, at, TEXT)
        name = body[start:key_end].decode("ascii", "replace")
        value, end = _value(body, key_end, name)
        if value == key_end:
            return None
        values[name] = body[key_end:value]
        building[-1].static(body[at:key_end])
        if name in VARYING:
            segments.append(building[-1].built(name))
            building.append(_Segment())
        else:
            building[-1].static(body[key_end:value])
            building[-1].value(name, end - value)
        at = end
    building[-1].static(b"" if pairs is not None else bytes([BREAK]))
    segments.append(building[-1].built())
    return RecordLayout(tuple(segments), building[0].prefix(), TIMES[values[TIME]]) if values.keys() >= NEEDED else None


def _value(body: bytes, at: int, name: str) -> tuple[int, int]:
    """Where the value at body[at] has its content; (at, at) if the name is not known, or the value not of its type."""
    if name == TIME:
        head = body[at : at + 1 + (body[at] == TAGGED)]
        return (at + len(head), at + len(head) + 8) if head in TIMES else (at, at)
    return string(body, at, TYPES[name]) if name in TYPES else (at, at)


def string(body: bytes, at: int, major: int) -> tuple[int, int]:
    """Where the string of definite length that begins at body[at] has its content; (at, at) if there is none of this type.

    Raises:
        IndexError: the body ends before.
    """
    small, size = body[at] & 31, HEADS[body[at]]
    if body[at] >> 5 != major or not size:
        return at, at
    start = at + size
    return start, start + (small if size == 1 else int.from_bytes(body[at + 1 : start], "big"))
