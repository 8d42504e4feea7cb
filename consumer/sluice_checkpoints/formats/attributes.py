"""Reads one attribute of a raw row at a time: checks its type, and refuses by name what it does not understand. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.snapshot import RawItem

SHARD_ID = re.compile(r"shardId-[0-9]{12}")
Types = Mapping[str, str]  # attribute → the type tags it may have, separated by spaces


class UnknownAttribute(Refused):
    """A row has attributes, `names`, that its format does not know: one of them may hold the position."""

    def __init__(self, names: Iterable[str], text: str) -> None:
        super().__init__(text)
        self.names = tuple(names)


def check_types(item: RawItem, types: Types) -> None:
    """Raises `UnknownAttribute` for attributes that are not in `types`, and `Refused` for one of another type than there."""
    if unknown := [name for name in item if name not in types]:
        raise UnknownAttribute(unknown, "unknown attribute " + ", ".join(f"{name} (type {next(iter(item[name]))})" for name in unknown))
    for name, tagged in item.items():
        (tag,) = tagged
        if tag not in types[name].split():
            raise Refused(f"attribute {name} has type {tag}, expected {' or '.join(types[name].split())}")


def text(item: RawItem, name: str) -> str:
    """A string that has to be there."""
    found = text_or_none(item, name)
    if found is None:
        raise Refused(f"attribute {name} is missing")
    return found


def text_or_none(item: RawItem, name: str) -> str | None:
    """A string; None: it is absent, or NULL."""
    ((tag, value),) = item.get(name, {"NULL": True}).items()
    if tag not in {"S", "NULL"}:
        raise Refused(f"attribute {name} has type {tag}, expected S")
    return str(value) if tag == "S" else None


def count(item: RawItem, name: str) -> int:
    """A whole number of 0 or more; one that is missing is 0."""
    written = str(item.get(name, {"N": "0"}).get("N", ""))
    try:
        number = Decimal(written)
    except InvalidOperation:
        number = Decimal(-1)
    if number < 0 or number != number.to_integral_value():
        raise Refused(f"{name} {written!r} is not a whole number of 0 or more")
    return int(number)


def shard_id(item: RawItem, name: str) -> str:
    """A shard's id that has to be there."""
    found = text(item, name)
    if not SHARD_ID.fullmatch(found):
        raise Refused(f"{name} {found!r} is not a shard id")
    return found


def shard_ids(item: RawItem, name: str) -> frozenset[str]:
    """A set of shard ids; none where it is missing."""
    ids = frozenset(map(str, item.get(name, {"SS": []})["SS"]))
    if strange := sorted(i for i in ids if not SHARD_ID.fullmatch(i)):
        raise Refused(f"{name} holds {strange[0]!r}, which is not a shard id")
    return ids
