"""Objects that are not small are decoded part by part, and of a part that is too large nothing is. Pure.

A byte of JSON may become thirty bytes of memory (`[],`), so bytes are counted before they are decoded. The API server writes `metadata` before
`spec`, and `status` last. Where it does not, the object is refused, never misread: what is cut out must itself be JSON.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import orjson

from sluice_operator.untrusted.decoding import TEXT, decoded
from sluice_operator.untrusted.metadata import metadata
from sluice_operator.untrusted.values import Unreadable

LOG = logging.getLogger("sluice")
Json = dict[str, Any]

SMALL = 64 * 1024  # bytes of an object that is decoded whole
PART_BYTES, PART_VALUES = 384 * 1024, 24_000  # of a part: a spec of 64 KiB has at most 22,000 values, and up to six times as many bytes (`\\u003c`)
PAGE_BYTES, PAGE_VALUES = 2 * 1024 * 1024, 131_072  # of a page of a list
PAGE, FEWER = 100, 5  # objects that are asked for; of a page that is too large, a fifth
MESSAGE = f"not read: larger than {PART_BYTES} bytes, or more than {PART_VALUES} values; move code and data into the image"
TEXTS = re.compile(TEXT, re.DOTALL)
QUOTES = 4  # of a member with its name
STATUSES = 32  # offsets that are tried: a pod template within the last good spec may have a status, too
EVENT = re.compile(rb'\{"type":"([A-Z]{1,16})","object":')
METADATA, SPEC, STATUS = b'"metadata":{', b',"spec":', b',"status":{'
UNREAD = "unread"
"""A field of an object of which only this and its metadata are known, and not all of that: it is seen, and nothing is decided by it."""


def is_large(part: bytes) -> bool:
    """Whether this part of an object is not to be decoded."""
    return len(part) > PART_BYTES or _exceeds(part, PART_VALUES)


def page(data: bytes, limit: int) -> Any:
    """The page of a list that was asked for with this limit; None if it is not to be decoded: ask for `fewer`. One object alone is cut.

    Raises:
        ValueError: it is no JSON, or no list.
    """
    if limit > 1 and (len(data) > PAGE_BYTES or _exceeds(data, PAGE_VALUES)):
        return None
    found = page_of_one(data) if limit == 1 else decoded(data)
    if not isinstance(found, dict):
        raise ValueError(f"a list is an object, and this is {type(found).__name__}")  # noqa: TRY004 - a matter of the bytes
    return found


def fewer(limit: int) -> int:
    """The next limit after a page that was too large."""
    return max(limit // FEWER, 1)


def more(limit: int) -> int:
    """The next limit after a page that was read."""
    return min(limit * 2, PAGE)


def readable(data: bytes) -> Any:
    """The JSON value. Of an object that is not small: its metadata, its spec and its status, and `MESSAGE` instead of one that is too large.

    Raises:
        Unreadable: it is not small, and its metadata cannot be found, or one member of that is too large.
        ValueError: it is no JSON.
    """
    if len(data) <= SMALL:
        return decoded(data)
    found = _cut(data.strip())
    if UNREAD in found:
        raise Unreadable(found[UNREAD])
    return found


def event(line: bytes) -> Any:
    """The event of one line of a watch, with its object as `readable` gives it, or with `UNREAD`."""
    found = EVENT.match(line) if len(line) > SMALL else None
    if found is None:
        return readable(line)
    return {"type": found[1].decode(), "object": _cut(line.strip()[found.end() : -1])}


def page_of_one(data: bytes) -> Any:
    """A list of one object, as `event` gives it. Custom resources are listed before the list's own metadata, pods and Jobs after it."""
    if len(data) <= SMALL:
        return decoded(data)
    data = data.strip()
    begin, end = data.find(b'"items":[') + len(b'"items":['), data.rfind(b'],"kind":"')
    end = end if end > begin else len(data) - 2
    page = decoded(data[:begin] + data[end:])
    try:
        return {**page, "items": [_cut(data[begin:end])]}
    except Unreadable as error:
        LOG.warning("an object of a list cannot be read: %s", error)
        return {**page, "items": []}


def _exceeds(data: bytes, most: int) -> bool:
    """Whether it has more values than that. Signs within texts are none; to look for texts takes longer, so it is done only if it matters."""
    left = _signs(data, 0, len(data)) - most
    if left <= 0 or data.count(b'"') - data.count(rb"\"") > QUOTES * most:
        return left > 0
    for text in TEXTS.finditer(data):
        left -= _signs(data, *text.span())
        if left <= 0:
            return False
    return True


def _signs(data: bytes, begin: int, end: int) -> int:
    return data.count(b",", begin, end) + data.count(b"[", begin, end) + data.count(b"{", begin, end)


def _cut(data: bytes) -> Json:
    begin = data.find(METADATA)
    if begin < 0:
        raise Unreadable(f"metadata: {MESSAGE}")
    meta, left_out, end = metadata(data, begin + len(METADATA) - 1, is_large)
    if left_out:
        return {"metadata": meta, UNREAD: f"metadata.{left_out[0]}: {MESSAGE}"}
    status, last = _status(data, end)
    parts = {"spec": _spec(data, end, last), "status": status}
    return {"metadata": meta} | {name: value for name, value in parts.items() if value is not None}


def _spec(data: bytes, begin: int, end: int) -> Any:
    """What is between metadata and status. A pod's or a Job's is not needed."""
    if not data.startswith(SPEC, begin):
        return None
    part = data[begin + len(SPEC) : end]
    try:
        return MESSAGE if is_large(part) else decoded(part)
    except ValueError:
        return MESSAGE


def _status(data: bytes, begin: int) -> tuple[Any, int]:
    """The last field of the object, and where it begins. A field of this name further inside is followed by more brackets, so it is no JSON alone."""
    end = len(data)
    for _ in range(STATUSES):
        end = data.rfind(STATUS, begin, end)
        part = data[end + len(STATUS) - 1 : -1]
        if end < 0 or is_large(part):
            break
        try:
            return orjson.loads(part), end
        except ValueError:
            continue
    last = data.rfind(STATUS, begin)
    return (None, len(data) - 1) if last < 0 else (MESSAGE, last)
