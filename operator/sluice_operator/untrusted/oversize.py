"""Objects that are too large to be decoded whole: what is needed of them is cut out of the API server's bytes. Pure.

A byte of JSON may become thirty bytes of memory (`[],`), so bytes are counted before they are decoded. The API server writes `metadata` before
`spec`, and `status` last. Where it does not, the object is refused, never misread: what is cut out must be JSON by itself.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import orjson

from sluice_operator.untrusted.decoding import decoded
from sluice_operator.untrusted.values import Unreadable

LOG = logging.getLogger("sluice")
Json = dict[str, Any]

OBJECT_BYTES, OBJECT_VALUES = 512 * 1024, 65_536  # of one object: a valid one has its spec three times, and the names of its fields
PAGE_BYTES, PAGE_VALUES = 2 * 1024 * 1024, 131_072  # of a page of a list
PAGE, FEWER = 100, 5  # objects that are asked for; of a page that is too large, a fifth
MESSAGE = f"not read: the resource is larger than {OBJECT_BYTES} bytes, or has more than {OBJECT_VALUES} values; move code and data into the image"
STATUSES = 32  # places that are tried: a pod template within the last good spec may have a status, too
EVENT = re.compile(rb'\{"type":"([A-Z]{1,16})","object":')
SPEC, STATUS = re.compile(rb'\},"(?:spec|status)":'), b'"status":{'
NOTED = re.compile(rb',?"managedFields":\[.*\](?=,"name":"|\}$)', re.DOTALL)


def is_large(data: bytes) -> bool:
    """Whether these bytes of one object are not to be decoded whole. Commas and brackets within texts count as well."""
    return len(data) > OBJECT_BYTES or _values(data) > OBJECT_VALUES


def page(data: bytes, limit: int) -> Any:
    """The page of a list that was asked for with this limit; None if it is not to be decoded: ask for `fewer`. One object alone is cut.

    Raises:
        ValueError: it is no JSON, or no list.
    """
    if limit > 1 and (len(data) > PAGE_BYTES or _values(data) > PAGE_VALUES):
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
    """The JSON value. Of an object that is too large: its metadata and its status, and `MESSAGE` as its spec.

    Raises:
        Unreadable: it is too large, and its metadata or its status cannot be told apart.
        ValueError: it is no JSON.
    """
    return _cut(data.strip()) if is_large(data) else decoded(data)


def event(line: bytes) -> Any:
    """The event of one line of a watch, with its object as `readable` gives it."""
    found = EVENT.match(line) if is_large(line) else None
    if found is None:
        return readable(line)
    return {"type": found[1].decode(), "object": _cut(line.strip()[found.end() : -1])}


def page_of_one(data: bytes) -> Any:
    """A list of one object, as `readable` gives it. Custom resources are listed before the list's own metadata, pods and Jobs after it."""
    if not is_large(data):
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


def _values(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _cut(data: bytes) -> Json:
    begin = data.find(b'"metadata":{') + len(b'"metadata":')
    end = SPEC.search(data, begin)
    meta = data[begin : end.start() + 1] if end and begin > len(b'"metadata":') else b""
    if is_large(meta):
        meta = NOTED.sub(b"", meta)
    if not meta or is_large(meta):
        raise Unreadable(f"metadata: {MESSAGE}")
    found = {"metadata": decoded(meta), "spec": MESSAGE}
    return found | {"status": status} if (status := _status(data)) is not None else found


def _status(data: bytes) -> Any:
    """The last field of the object. A field of this name further inside is followed by more brackets, so it is no JSON without the last one."""
    end = len(data)
    for _ in range(STATUSES):
        end = data.rfind(STATUS, 0, end)
        if end < 0 or len(data) - end > OBJECT_BYTES:
            break
        part = data[end + len(STATUS) - 1 : -1]
        if is_large(part):
            break
        try:
            return orjson.loads(part)
        except ValueError:
            continue
    return None if data.rfind(STATUS) < 0 else MESSAGE
