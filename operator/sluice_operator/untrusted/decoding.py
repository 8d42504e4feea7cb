"""Bytes of the API server to JSON, however deep they are nested. Pure.

A resource has fields without a schema, and the API server takes 10,000 levels there. A parser gives up at about 1,000, and with the list or the watch
that holds the object every other object would be lost.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

DEEPEST = 200  # levels that are kept: every encoder takes 254, and Python's stack 1,000
CUT = b'"(nested too deeply to be read)"'
TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
LEADING = json.JSONDecoder()
TOKEN = re.compile(TEXT + rb"|[\[\]{}]", re.DOTALL)  # a text, or a bracket outside of one


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
