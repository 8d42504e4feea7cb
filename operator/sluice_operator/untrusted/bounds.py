"""Whether a JSON value of any form may be handed on to code that recurses, encodes and hashes. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH = 64  # levels: a pod template has 12
VALUES = 65_536  # values and keys
LARGE = f"has more than {VALUES} values; move data out of the resource"
LEAST, GREATEST = -(2**63), 2**64 - 1  # of a whole number: no JSON encoder of ours writes more
SHOWN = 4  # names of a path that a message shows


def problem(value: object, path: str, most: int = VALUES, large: str = LARGE) -> str | None:
    """Why the value cannot be used, naming the field in it; None if it can.

    It does not recurse. It stops at `most` values and keys, and says `large` then.
    """
    open_, seen = [(path, 0, value)], 0
    while open_:
        where, depth, item = open_.pop()
        seen += 1
        if why := _refusal(item, depth):
            return f"{where}: {why}"
        if seen > most:
            return f"{path}: {large}"
        open_ += _inside(where, depth, item)
    return None


def _refusal(item: object, depth: int) -> str | None:
    if depth > DEPTH:
        return f"is nested more than {DEPTH} levels deep; flatten it, or pass it as text"
    if isinstance(item, float):
        return None if math.isfinite(item) else "is not a finite number"
    if isinstance(item, int):
        return None if LEAST <= item <= GREATEST else "is a larger number than Sluice ever writes"
    return None if not isinstance(item, str) or _is_unicode(item) else "has characters that are not Unicode"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _inside(where: str, depth: int, item: object) -> Iterator[tuple[str, int, object]]:
    shown = depth < SHOWN
    if isinstance(item, dict):
        for key, value in item.items():
            yield (where, depth, key)
            yield (f"{where}.{key[:64]}" if shown else where, depth + 1, value)
    elif isinstance(item, list):
        for at, value in enumerate(item):
            yield (f"{where}[{at}]" if shown else where, depth + 1, value)
