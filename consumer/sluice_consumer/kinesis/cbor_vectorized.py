"""Decodes the records of a long CBOR reply at once: a few hundred cursors walk from record to record side by side, in numpy.

A CBOR item begins with its length, so one record is found only after the previous one. In Python that is a loop, the dearest part of a task. So
cursors start at offsets that *look* like the beginning of a record, spread over the reply, and each walks until it meets the start of the next one.
Looks may deceive, because a payload can hold any bytes. Hence nothing is believed until every byte that is not a value was compared with the first
record's (`layout`), and every record ends where the next begins. Everything else, and every form that is not known, is left to the library.

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
from typing import Any

import numpy as np
import numpy.typing as npt

from sluice_consumer.kinesis import arrow_arrays
from sluice_consumer.kinesis.packed import PackedRecords, cut, cut_even

TEXT, BYTES = 3, 2
BREAK, INDEFINITE, TAGGED = 0xFF, 0xBF, 0xC1
TIMES = {b"\x1b": ">u8", b"\xfb": ">f8", b"\xc1\x1b": ">u8", b"\xc1\xfb": ">f8"}  # heads of a time, and how its eight bytes are read
TIME = "ApproximateArrivalTimestamp"
TYPES = {"SequenceNumber": TEXT, "EncryptionType": TEXT, "PartitionKey": TEXT, "Data": BYTES}
VARYING = {"PartitionKey", "Data"}  # in length; the others nearly never, and then the layout is not theirs
NEEDED = {"SequenceNumber", TIME, *VARYING}
# By the first byte of a string, how long its head is; 0: no string of definite length, or of 4 GiB and more, which are not known here.
HEADS = tuple({24: 2, 25: 3, 26: 5}.get(byte & 31, 1 if byte & 31 < 24 else 0) for byte in range(256))
Places = npt.NDArray[np.int64]
ROWS = 512  # whose segments are compared at once: they fit into the nearest cache
STRIDE = 12  # records from cursor to cursor: fewer steps against fewer searches (measured: flat from 8 to 24)
MILLIS_FROM = 10**11  # as in `cbor`
TIMES_END = 2**52  # exact as integer and as double; milliseconds of the year 144,683
# By the first byte of a string: how long its head is. In the eight bytes that begin with it, by how many bits its length is shifted, and of how many
# bits it is.
LOW = [byte & 31 for byte in range(256)]
HEAD = np.array(HEADS, dtype=np.int64)
SHIFT = np.array([{24: 48, 25: 40, 26: 24}.get(low, 56) for low in LOW], dtype=np.int64)
MASK = np.array([{24: 0xFF, 25: 0xFFFF, 26: 0xFFFFFFFF}.get(low, 31) for low in LOW], dtype=np.int64)


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


@dataclass(frozen=True, slots=True)
class Spans:
    """Where values are, for many records at once."""

    starts: dict[str, Places]
    ends: dict[str, Places]


def read(body: bytes, at: int, least: int) -> tuple[PackedRecords, int] | None:
    """The records of the array that begins at body[at], and where it ends; None if they are fewer than `least` or not of a known form.

    Raises:
        IndexError: the body ends inside of them.
        ValueError: text or a time that is none.
    """
    count, first = _array(body, at)
    if count is not None and count < least:
        return None
    known = layout(body, first)
    if known is None:
        return None
    page = _Page(body, known)
    walked = page.walk(first)
    if walked.shape[1] < least or not (walked[-1, :-1] == walked[0, 1:]).all():
        return None
    end = int(walked[-1, -1])
    if walked.shape[1] != count if count is not None else body[end] != BREAK:
        return None
    spans = page.spans(walked)
    if spans is None:
        return None
    return page.packed(spans), end + (count is None)


def _array(body: bytes, at: int) -> tuple[int | None, int]:
    """How many items an array has (None: it says at its end), and where they begin."""
    if body[at] == 0x9F:
        return None, at + 1
    sizes = {0x98: 1, 0x99: 2, 0x9A: 4}
    if body[at] in sizes:
        size = sizes[body[at]]
        return int.from_bytes(body[at + 1 : at + 1 + size], "big"), at + 1 + size
    return (body[at] & 31 if 0x80 <= body[at] < 0x98 else 0), at + 1


class _Page:
    """One reply, seen as bytes and, at every byte, as the eight bytes that begin there."""

    def __init__(self, body: bytes, known: RecordLayout) -> None:
        self._body, self._layout = body, known
        self._raw = np.frombuffer(body, np.uint8)
        self._big = self._at_every_byte(">u8")

    def _at_every_byte(self, dtype: str) -> npt.NDArray[Any]:
        size = np.dtype(dtype).itemsize
        return np.ndarray((max(0, len(self._raw) - size + 1),), dtype, buffer=self._raw.data, strides=(1,))

    def walk(self, first: int) -> Places:
        """The records as far as cursors believe: a column for each, in order, as `_step` makes them.

        Raises:
            IndexError: the body ends inside of one.
        """
        mark, size = self._layout.mark, len(self._body)
        step = max(1, int(self._step(np.array([first]))[-1, 0]) - first) * STRIDE
        candidates = np.fromiter((self._body.find(mark, at) for at in range(first + step, size, step)), np.int64)
        cursors = np.unique(np.append(candidates[candidates >= 0], first))
        limits, who = np.append(cursors[1:], size), np.arange(len(cursors))
        steps = list[tuple[Places, Places]]()
        while len(who):
            steps.append((who, self._step(cursors)))
            cursors = steps[-1][1][-1]
            inside = cursors < limits[who]
            inside &= self._raw.take(cursors, mode="clip") == mark[0]
            cursors, who = cursors[inside], who[inside]
        return _in_order(steps, len(limits))

    def _step(self, at: Places) -> Places:
        """Of the records that begin at these offsets, if they are records, a column each.

        Rows are where it begins, then for each value of varying length where it is, its length and the first byte of its head, then where it ends.
        """
        rows = [at]
        for segment in self._layout.segments:
            at = at + segment.length
            if segment.varying:
                word = self._big[at].astype(np.int64)
                first = (word >> 56) & 0xFF
                start, length = at + HEAD.take(first), (word >> SHIFT.take(first)) & MASK.take(first)
                rows += start, length, first
                at = start + length
        return np.array([*rows, at])

    def spans(self, walked: Places) -> Spans | None:
        """Values of the records that were walked; None if the bytes between them differ from the layout."""
        starts, ends = dict[str, Places](), dict[str, Places]()
        at, strings = walked[0], iter(walked[1:-1])
        for segment in self._layout.segments:
            if not self._same(at, segment):
                return None
            for name, (offset, length) in segment.fixed.items():
                starts[name] = at + offset
                ends[name] = starts[name] + length
            if segment.varying:
                begin, size, first = next(strings), next(strings), next(strings)
                if not ((first >> 5 == TYPES[segment.varying]) & (begin > at + segment.length)).all():
                    return None
                starts[segment.varying], ends[segment.varying] = begin, begin + size
                at = ends[segment.varying]
        return Spans(starts, ends)

    def _same(self, at: Places, segment: FixedSegment) -> bool:
        """Whether a segment of the layout begins at all of the offsets: eight bytes at a time, some hundreds of offsets at once."""
        width = len(segment.same)
        if not width:
            return True
        words = self._at_every_byte(f"V{width}")[at + (segment.length - width)].view(np.uint64)
        same, mask = (np.tile(np.frombuffer(each, np.uint64), min(ROWS, len(at))) for each in (segment.same, segment.mask))
        blocks = (words[i : i + len(same)] for i in range(0, len(words), len(same)))
        return not any((((block ^ same[: len(block)]) & mask[: len(block)]) != 0).any() for block in blocks)

    def packed(self, spans: Spans) -> PackedRecords:
        """The columns.

        Raises:
            ValueError: text or a time that is none.
        """
        starts, ends = spans.starts, spans.ends
        millis = _millis(self._at_every_byte(self._layout.time)[starts[TIME]])
        sequence = cut_even(self._body, starts["SequenceNumber"], int(ends["SequenceNumber"][0] - starts["SequenceNumber"][0]))
        key, data = (cut(self._body, starts[name], ends[name]) for name in ("PartitionKey", "Data"))
        return PackedRecords(arrow_arrays.strings(sequence), arrow_arrays.strings(key), data, arrow_arrays.numbers(millis))


def _in_order(steps: list[tuple[Places, Places]], cursors: int) -> Places:
    """All that the first cursor found, then all of the second, and so on; a pair for each step: which cursors made it, and what they found."""
    counts = np.bincount(np.concatenate([who for who, _ in steps]), minlength=cursors)
    begin = np.cumsum(counts) - counts
    walked = np.empty((len(steps[0][1]), int(counts.sum())), np.int64)
    for number, (who, step) in enumerate(steps):
        walked[:, begin[who] + number] = step
    return walked


def _millis(times: npt.NDArray[Any]) -> Places:
    """Epoch milliseconds, of times in milliseconds or seconds (as in `cbor.millis`).

    Raises:
        ValueError: one is none.
    """
    values = times.astype(times.dtype.newbyteorder("="))
    if not (values.min() > -TIMES_END and values.max() < TIMES_END):  # so written, for a double may be NaN
        raise ValueError("a time that is none")
    if values.min() < MILLIS_FROM:
        values = np.where(np.abs(values) >= MILLIS_FROM, values, values * 1000)
    return np.rint(values).astype(np.int64) if values.dtype.kind == "f" else values.astype(np.int64)
