"""An object's metadata, cut out of the API server's bytes member by member: any of them may be as large as an object may be. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from sluice_operator.untrusted.decoding import TEXT, decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOKEN = re.compile(TEXT + rb'|[\[\]{}]|[^\s"\[\]{},:]++', re.DOTALL)
LABEL = re.compile(rb'"((?:(?:sluice\.dev|app\.kubernetes\.io)/|spark-)[^"\\]{1,63})":"([^"\\]{0,63})"')
OPENS, CLOSES = b"[{", b"]}"
LABELS, NOTED = b'"labels"', b'"managedFields"'


class Metadata(NamedTuple):
    """What was decoded, the names of the members that were not, for they are too large, and where its bytes end.

    Of too many labels, those of Sluice, of Spark and of `app.kubernetes.io` are kept. What field managers noted (`managedFields`) is left out.
    """

    value: dict[str, Any]
    left_out: tuple[str, ...]
    end: int


def metadata(data: bytes, begin: int, is_large: Callable[[bytes], bool]) -> Metadata:
    """The metadata whose `{` is at `begin`.

    Raises:
        ValueError: it is no JSON object.
    """
    kept, left_out, labels = list[bytes](), list[str](), dict[str, str]()
    members = list(_members(data, begin))
    for name, value, _ in members:
        if name == NOTED:
            continue
        if not is_large(value):
            kept.append(name + b":" + value)
        elif name == LABELS:
            labels = {found[1].decode(): found[2].decode() for found in LABEL.finditer(value)}
        else:
            left_out.append(orjson.loads(name))
    value = decoded(b"{%b}" % b",".join(kept))
    return Metadata(value | ({"labels": labels} if labels else {}), tuple(left_out), members[-1][2] if members else begin + len(b"{}"))


def _members(data: bytes, begin: int) -> Iterator[tuple[bytes, bytes, int]]:
    """Name and value of each member of the object, as they are written, and where the object ends if this is its last one."""
    depth, name, start = 0, b"", begin
    for token in TOKEN.finditer(data, begin):
        sign = data[token.start()]
        if sign in OPENS:
            start = token.start() if depth == 1 else start
            depth += 1
        elif sign in CLOSES:
            depth -= 1
            if depth == 1:
                yield name, data[start : token.end()], token.end() + 1
                name = b""
            if depth <= 0:
                return
        elif depth == 1:
            if name:
                yield name, token[0], token.end() + 1
            name = b"" if name else token[0]
    raise ValueError("the object has no end")
