"""Walks the fields of a protobuf message as protobuf for Java does (4.27, in KCL 3.5): it refuses what that refuses, and reads text as that reads it.

No dependency on protobuf: its Python parser refuses other messages, and proto2's text has no check of UTF-8 in Java.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)
FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
LAST_SHIFT = 63  # of a varint: it has at most ten bytes; what is over 64 bits is dropped
MOST_NESTED = 100  # messages and groups in each other
UNREADABLE = "\ufffd"


class Malformed(ValueError):
    """Protobuf for Java refuses this message."""


def fields(body: bytes, at: int, stop: int, depth: int = 0) -> Iterator[tuple[int, Any]]:
    """Tags and values of one message in body[at:stop]: varints as numbers, everything else as the slice where its bytes are.

    Args:
        body: holds the message.
        at: where it begins.
        stop: where it ends.
        depth: how many messages and groups it is in.

    Raises:
        Malformed: it is none. Groups are stepped over.
    """
    while at < stop:
        tag = body[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = _varint(body, at, stop)
            tag &= 0xFFFFFFFF
        kind = tag & 7
        if not tag >> 3:
            raise Malformed("a field has a number")
        if kind == LENGTH:
            size, at = _length(body, at, stop)
            yield tag, slice(at, at + size)
            at += size
        elif kind == VARINT:
            value, at = _varint(body, at, stop)
            yield tag, value
        elif kind == GROUP:
            at = _after_group(body, at, stop, tag, depth + 1)
        elif kind in FIXED_SIZES:
            at = _fits(at + FIXED_SIZES[kind], stop)
        else:
            raise Malformed(f"wire type {kind} cannot be here")


def int32(value: int) -> int:
    """The lower 32 bits of a number, with their sign."""
    return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def _after_group(body: bytes, at: int, stop: int, begun: int, depth: int) -> int:
    """Where a group ends that holds anything at all, and the end of its own number."""
    open_tags = [begun]
    while open_tags:
        if depth + len(open_tags) - 1 > MOST_NESTED:
            raise Malformed(f"more than {MOST_NESTED} levels")
        tag, at = _varint(body, at, stop)
        tag &= 0xFFFFFFFF
        kind = tag & 7
        if not tag >> 3:
            raise Malformed("a field has a number")
        if kind == GROUP:
            open_tags.append(tag)
        elif kind == END_GROUP:
            if open_tags.pop() >> 3 != tag >> 3:
                raise Malformed("another group ends here")
        elif kind == VARINT:
            _, at = _varint(body, at, stop)
        elif kind == LENGTH:
            size, at = _length(body, at, stop)
            at += size
        elif kind in FIXED_SIZES:
            at = _fits(at + FIXED_SIZES[kind], stop)
        else:
            raise Malformed(f"there is no wire type {kind}")
    return at


def _length(body: bytes, at: int, stop: int) -> tuple[int, int]:
    """The size of what follows, and where it begins."""
    size, at = _varint(body, at, stop)
    size &= 0xFFFFFFFF
    _fits(at + size, stop)  # a negative one is far too large as well
    return size, at


def _fits(end: int, stop: int) -> int:
    if end > stop:
        raise Malformed("a field is longer than its message")
    return end


def _varint(body: bytes, at: int, stop: int) -> tuple[int, int]:
    value = shift = 0
    while at < stop:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > LAST_SHIFT:
            raise Malformed("a number has more than ten bytes")
    raise Malformed("a number is longer than its message")


# -- text --------------------------------------------------------------------------------------------------------------------------


def text(data: bytes) -> str:
    """UTF-8, with U+FFFD for what is none: as often as Java's `String` does, which is not as often as Python does."""
    return data.decode("utf-8", "as-java")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 - the handler is used for decoding only
    at = error.start
    return UNREADABLE, at + _unreadable(error.object[at:])


def _unreadable(rest: bytes) -> int:
    """How many bytes one U+FFFD stands for, at the beginning of what cannot be read.

    A character that is cut by others counts as far as it goes, as in Python. But Java takes the three bytes of a surrogate together, and all that is
    left of a character at the end of the text.
    """
    lead = rest[0]
    if 0xE0 <= lead <= 0xEF:
        return _of_three(rest)
    if 0xF0 <= lead <= 0xF7:
        return _of_four(rest)
    return 1


def _of_three(rest: bytes) -> int:
    """A lead byte E0 to EF."""
    if len(rest) > 1 and (not _continues(rest[1]) or (rest[0] == 0xE0 and rest[1] < 0xA0)):
        return 1
    if len(rest) > 2:
        return 3 if _continues(rest[2]) else 2  # three: a surrogate
    return len(rest)


def _of_four(rest: bytes) -> int:
    """A lead byte F0 to F7."""
    if rest[0] > 0xF4 or (len(rest) > 1 and not _second_of_four(rest[0], rest[1])):
        return 1
    if len(rest) > 2:
        return 3 if _continues(rest[2]) else 2
    return len(rest)


def _second_of_four(lead: int, second: int) -> bool:
    low, high = {0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(lead, (0x80, 0xBF))
    return low <= second <= high


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80


codecs.register_error("as-java", _replaced)
