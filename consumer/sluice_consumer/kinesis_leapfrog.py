"""Reads the records of a long CBOR reply in leaps: a few hundred cursors walk from record to record at once, in numpy.

A CBOR item says its length in front, so one record is found only after the one before it: in Python a loop, the dearest part of a task. So cursors
start at places that *look* like the beginning of a record, spread over the reply, and each walks until it meets the start of the next one. Looks may
deceive, a payload can hold any bytes. Hence nothing is believed until every byte that is not a value was compared with the first record's, and
every record ends where the next begins; whatever is otherwise, and every form that is not known here, is left to the library.

Known: maps of definite or indefinite length with the same text keys in the same order, whose values are text or bytes of definite length, or a time
of eight bytes (integer or double, tagged 1 or not).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sluice_consumer.kinesis_packed import PackedRecords, cut

Places = npt.NDArray[np.int64]
TEXT, BYTES = 3, 2
BREAK = 0xFF
STRIDE = 12  # records from cursor to cursor: fewer leaps against fewer searches (measured: flat from 8 to 24)
MILLIS_FROM = 10**11  # as in kinesis_cbor
TIMES_END = 2**52  # exact as integer and as double; milliseconds of the year 144,683
TIMES = {b"\x1b": ">u8", b"\xfb": ">f8", b"\xc1\x1b": ">u8", b"\xc1\xfb": ">f8"}  # heads of a time, and how its eight bytes are read
FIELDS = {"SequenceNumber": TEXT, "PartitionKey": TEXT, "Data": BYTES, "ApproximateArrivalTimestamp": None, "EncryptionType": TEXT}
OF_ONE_LENGTH = {"SequenceNumber", "EncryptionType"}  # nearly always; their heads then count as static
# By the first byte of a string: how long its head is (0: no string of definite length), and in the eight bytes that begin with it, by how many bits
# its length is shifted, and of how many bits it is. (4 GiB and more are not known here.)
LOW = [byte & 31 for byte in range(256)]
HEAD = np.array([{24: 2, 25: 3, 26: 5}.get(low, 1 if low < 24 else 0) for low in LOW], dtype=np.int64)
SHIFT = np.array([{24: 48, 25: 40, 26: 24}.get(low, 56) for low in LOW], dtype=np.uint64)
MASK = np.array([{24: 0xFF, 25: 0xFFFF, 26: 0xFFFFFFFF}.get(low, 31) for low in LOW], dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Field:
    """One pair of a record's map.

    Attributes:
        static: the bytes before the value that are the same in every record: the key, and the head of a value of one length.
        length: of the value, if all have the same.
        major: type of the value, TEXT or BYTES; None: a time, its eight bytes read as `time`.
    """

    name: str
    static: bytes
    length: int | None
    major: int | None
    time: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """What every record looks like; `tail` is its break, if its map is of indefinite length."""

    fields: tuple[Field, ...]
    tail: bytes


@dataclass(frozen=True, slots=True)
class Spans:
    """Where values are, for many records at once; `valid` says whether what stands between them is the form's."""

    starts: dict[str, Places]
    ends: dict[str, Places]
    end: Places
    valid: bool


def read(body: bytes, at: int, least: int) -> tuple[PackedRecords, int] | None:
    """The records of the array that begins at body[at], and where it ends; None if they are fewer than `least` or not of a known form."""
    count, first = _array(body, at)
    if count is not None and count < least:
        return None
    form = _form(body, first)
    if form is None:
        return None
    page = _Page(np.frombuffer(body, np.uint8), form)
    starts = page.leap(body, first)
    if len(starts) < least:
        return None
    spans = page.spans(starts, check=True)
    end = int(spans.end[-1])
    whole = spans.valid and bool((spans.end[:-1] == starts[1:]).all()) and end <= len(body)
    if not whole or (len(starts) != count if count is not None else end >= len(body) or body[end] != BREAK):
        return None
    return _packed(page, body, spans), end + (count is None)


def _array(body: bytes, at: int) -> tuple[int | None, int]:
    """How many items an array has (None: it says at its end), and where they begin."""
    if body[at] == 0x9F:
        return None, at + 1
    sizes = {0x98: 1, 0x99: 2, 0x9A: 4}
    if body[at] in sizes:
        size = sizes[body[at]]
        return int.from_bytes(body[at + 1 : at + 1 + size], "big"), at + 1 + size
    return (body[at] & 31 if 0x80 <= body[at] < 0x98 else 0), at + 1


def _form(body: bytes, at: int) -> Form | None:
    """The form of the record that begins at body[at], if it is known."""
    if at >= len(body) or (body[at] != 0xBF and not 0xA4 <= body[at] <= 0xA5):
        return None
    pairs = None if body[at] == 0xBF else body[at] & 31
    static, at, fields = body[at : at + 1], at + 1, list[Field]()
    while len(fields) != pairs and at < len(body) and body[at] != BREAK:
        name, start = _text(body, at)
        field, at = _field(body, name, static + body[at:start], start)
        if field is None:
            return None
        fields.append(field)
        static = b""
    known = {field.name for field in fields}
    complete = len(known) == len(fields) and FIELDS.keys() - known <= {"EncryptionType"}
    return Form(tuple(fields), b"\xff" if pairs is None else b"") if complete else None


def _field(body: bytes, name: str, static: bytes, at: int) -> tuple[Field | None, int]:
    """The field whose value begins at body[at], and where it ends; None if it is not known."""
    major = FIELDS.get(name, 0)
    if major is None:
        head = body[at : at + 1 + (body[at] == 0xC1)]
        time = TIMES.get(head, "")
        return (Field(name, static + head, 8, None, time) if time else None), at + len(head) + 8
    start, end = _string(body, at, major)
    if start == at:
        return None, at
    fixed = name in OF_ONE_LENGTH
    return Field(name, static + (body[at:start] if fixed else b""), end - start if fixed else None, major), end


def _text(body: bytes, at: int) -> tuple[str, int]:
    start, end = _string(body, at, TEXT)
    return body[start:end].decode("ascii", "replace"), end


def _string(body: bytes, at: int, major: int) -> tuple[int, int]:
    """Where the string that begins at body[at] has its content; (at, at) if there is none of this type."""
    if at >= len(body) or body[at] >> 5 != major or not HEAD[body[at]]:
        return at, at
    small, size = body[at] & 31, int(HEAD[body[at]])
    start = at + size
    return start, start + (small if size == 1 else int.from_bytes(body[at + 1 : start], "big"))


class _Page:
    """One reply, seen as bytes and, at every byte, as the four or eight bytes that begin there."""

    def __init__(self, raw: npt.NDArray[np.uint8], form: Form) -> None:
        self._raw, self.form, self._size = raw, form, len(raw)

    def words(self, dtype: str, at: Places) -> npt.NDArray[Any]:
        """What begins at these places; near the end of the reply, the last there is."""
        view = np.ndarray((self._size - np.dtype(dtype).itemsize + 1,), dtype, buffer=self._raw.data, strides=(1,))
        # Not `take`, which would first copy all of an unaligned view.
        found: npt.NDArray[Any] = view[np.minimum(at, len(view) - 1)]
        return found

    def leap(self, body: bytes, first: int) -> Places:
        """Where records begin, as far as cursors believe."""
        mark, step = self.form.fields[0].static, self._step(first)
        looks = (body.find(mark, at) for at in range(first + step, self._size, step))
        cursors = np.array(sorted({first, *looks} - {-1}), dtype=np.int64)
        limits = np.append(cursors[1:], self._size)
        found = [cursors]
        while len(cursors):
            cursors = self.spans(cursors).end
            inside = cursors < limits
            inside &= self._raw.take(cursors, mode="clip") == mark[0]
            cursors, limits = cursors[inside], limits[inside]
            found.append(cursors)
        return np.sort(np.concatenate(found))

    def _step(self, first: int) -> int:
        return max(1, int(self.spans(np.array([first])).end[0]) - first) * STRIDE

    def spans(self, at: Places, *, check: bool = False) -> Spans:
        """Values of the records that begin at these places."""
        starts, ends, valid = dict[str, Places](), dict[str, Places](), True
        for field in self.form.fields:
            valid = valid and (not check or self._same(at, field.static))
            at = at + len(field.static)
            if field.length is None:
                starts[field.name], ends[field.name], sound = self._value(at, field.major, check=check)
                valid = valid and sound
            else:
                starts[field.name], ends[field.name] = at, at + field.length
            at = ends[field.name]
        valid = valid and (not check or self._same(at, self.form.tail))
        return Spans(starts, ends, at + len(self.form.tail), valid)

    def _value(self, at: Places, major: int | None, *, check: bool) -> tuple[Places, Places, bool]:
        word = self.words(">u8", at).astype(np.uint64)
        first = (word >> np.uint64(56)).astype(np.int64)
        head = HEAD[first]
        start = at + head
        sound = not check or bool(((first >> 5 == major) & (head > 0)).all())
        return start, start + ((word >> SHIFT[first]) & MASK[first]).astype(np.int64), sound

    def _same(self, at: Places, static: bytes) -> bool:
        """Whether these bytes stand at all of the places; eight are compared at a time, the last eight may overlap the ones before."""
        if len(static) < 8:
            return all(bool((self._raw.take(at + i, mode="clip") == byte).all()) for i, byte in enumerate(static))
        offsets = [*range(0, len(static) - 7, 8), len(static) - 8]
        wanted = ((offset, int.from_bytes(static[offset : offset + 8], "little")) for offset in offsets)
        return all(bool((self.words("<u8", at + offset) == np.uint64(word)).all()) for offset, word in wanted)


def _packed(page: _Page, body: bytes, spans: Spans) -> PackedRecords:
    """The columns.

    Raises:
        ValueError: text or a time that is none.
    """
    time = next(field.time for field in page.form.fields if field.major is None)
    values = page.words(time, spans.starts["ApproximateArrivalTimestamp"])
    if not (np.abs(values) < TIMES_END).all():
        raise ValueError("a time that is none")
    scaled = np.where(np.abs(values) >= MILLIS_FROM, values, values * 1000)
    millis = np.rint(scaled).astype(np.int64)
    sequence, key, data = (cut(body, spans.starts[name], spans.ends[name]) for name in ("SequenceNumber", "PartitionKey", "Data"))
    return PackedRecords(sequence.cast(pa.string()), key.cast(pa.string()), data, pa.array(millis))
