"""Bytes of the API server to JSON: however deep they are nested, and of an object that has too many, the metadata alone. Pure.

A resource has fields without a schema, and the API server takes 10,000 levels there. A parser gives up at about 1,000, and with the list or the watch
that holds the object every other object would be lost.

A byte of JSON may become thirty bytes of memory (`[],`), so bytes are counted before they are decoded.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from sluice_operator.untrusted.values import Unreadable, objects, part

DEEPEST = 200  # levels that are kept: every encoder takes 254, and Python's stack 1,000
CUT = b'"(nested too deeply to be read)"'
TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
LEADING = json.JSONDecoder()
TOKEN = re.compile(TEXT + rb"|[\[\]{}]", re.DOTALL)  # a text, or a bracket outside of one
Json = dict[str, Any]

SMALL = 64 * 1024  # bytes that are not counted
BYTES, VALUES = 2 * 1024 * 1024, 131_072  # of an object, and of a page of a list
PAGE, FEWER = 100, 5  # objects that are asked for; of a page that is too large, a fifth
NOT_READ = f"not read: the object has more than {VALUES} values, or {BYTES} bytes; move code and data into the image"
TEXTS = re.compile(TEXT, re.DOTALL)
QUOTES = 4  # of a member with its name
EVENT = re.compile(rb'\{"type":"([A-Z]{1,16})","object":')
METADATA = b'"metadata":'


def decoded(data: bytes) -> Any:
    """The JSON value. If it is nested too deeply for the parser, what is below 200 levels is replaced by a text.

    Such a value may be read, and never written back.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return orjson.loads(data)
    except ValueError:
        shallow = _cut(data)
        if shallow == data:
            raise
        return orjson.loads(shallow)


def leading(data: bytes) -> Any:
    """The JSON value that these bytes begin with, whatever follows it; as `decoded` gives it.

    Raises:
        ValueError: they begin with none.
    """
    try:
        return LEADING.raw_decode(data.decode())[0]
    except RecursionError:
        return LEADING.raw_decode(_cut(data).decode())[0]


def _cut(data: bytes) -> bytes:
    kept, depth, begin = list[bytes](), 0, 0
    for token in TOKEN.finditer(data):
        sign = data[token.start()]
        if sign in b"[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept.append(data[begin : token.start()])
        elif sign in b"]}":
            if depth == DEEPEST + 1:
                kept.append(CUT)
                begin = token.end()
            depth -= 1
    return b"".join([*kept, data[begin:]])


def page(data: bytes) -> Any:
    """The page of a list; None if it is too large: ask for `fewer`, and of one object for the metadata (`metadata_alone`).

    Raises:
        ValueError: it is no JSON, or no list.
    """
    return None if _is_large(data) else _list(data)


def metadata_alone(data: bytes) -> Any:
    """The page of one object that was too large, asked for as PartialObjectMetadata: what it has besides is `NOT_READ`.

    Raises:
        ValueError: it is no JSON, or no list.
    """
    listed = _list(data)
    return {**listed, "items": [_unread(part(item, "metadata")) for item in objects(listed, "items")]}


def fewer(limit: int) -> int:
    """The next limit after a page that was too large."""
    return max(limit // FEWER, 1)


def more(limit: int) -> int:
    """The next limit after a page that was read."""
    return min(limit * 2, PAGE)


def readable(data: bytes) -> Any:
    """The JSON value. Of an object that is too large its metadata, and `NOT_READ` for its spec and its status.

    Raises:
        Unreadable: it is too large, and its metadata cannot be read.
        ValueError: it is no JSON.
    """
    if not _is_large(data):
        return decoded(data)
    begin = data.find(METADATA)  # what the API server writes before it is none of a user's
    try:
        return _unread(leading(data[begin + len(METADATA) :]))
    except ValueError as error:
        raise Unreadable(f"metadata: {NOT_READ}") from error


def event(line: bytes) -> Any:
    """The event of one line of a watch, with its object as `readable` gives it."""
    match = EVENT.match(line) if _is_large(line) else None
    return {"type": match[1].decode(), "object": readable(line[match.end() :])} if match else decoded(line)


def _unread(metadata: Any) -> Json:
    return {"metadata": metadata, "spec": NOT_READ, "status": NOT_READ}


def _list(data: bytes) -> Json:
    document = decoded(data)
    if not isinstance(document, dict):
        raise ValueError(f"a list is an object, and this is {type(document).__name__}")  # noqa: TRY004 - a matter of the bytes
    return document


def _is_large(data: bytes) -> bool:
    """Signs within texts are no values; to look for texts takes longer, so it is done only if it matters."""
    if len(data) <= SMALL or len(data) > BYTES:
        return len(data) > BYTES
    left = _signs(data, 0, len(data)) - VALUES
    if left <= 0 or data.count(b'"') - data.count(rb"\"") > QUOTES * VALUES:
        return left > 0
    for text in TEXTS.finditer(data):
        left -= _signs(data, *text.span())
        if left <= 0:
            return False
    return True


def _signs(data: bytes, begin: int, end: int) -> int:
    return data.count(b",", begin, end) + data.count(b"[", begin, end) + data.count(b"{", begin, end)
