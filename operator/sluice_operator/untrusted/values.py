"""Parts of an object whose form nobody guarantees: a value within bounds, or its absence. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sluice_operator.names import printable

Json = dict[str, Any]

NAME = 253  # characters of a name, a word or an annotation
WORDS = 1024  # characters of a message
MOST = 2**53  # of a number: greater whole numbers are not exact in every JSON parser
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)  # of a time, so that one may add to it
TIME = 64  # characters of a time


class Unreadable(ValueError):
    """An object without what every object has, or a status that no operator wrote. The message names the field."""


def part(where: object, *path: str) -> Json:
    """The object at this path; {} if there is none, or something else."""
    for key in path:
        where = where.get(key) if isinstance(where, dict) else None
    return where if isinstance(where, dict) else {}


def objects(where: object, key: str) -> list[Json]:
    """The objects of the list under this key; whatever else it holds is left out."""
    value = where.get(key) if isinstance(where, dict) else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(where: object, key: str, most: int = NAME) -> str | None:
    """The text under this key, cut to `most` characters; None if there is none."""
    value = where.get(key) if isinstance(where, dict) else None
    return value[:most] if isinstance(value, str) else None


def texts(where: object, key: str) -> tuple[str, ...]:
    """The texts of the list under this key, as they are; whatever else it holds is left out."""
    value = where.get(key) if isinstance(where, dict) else None
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def request(where: object, key: str) -> str | None:
    """The text under this key as something that is asked for, as one printable line. Empty or blank text asks for nothing: None."""
    asked = text(where, key)
    return printable(asked) if asked and not asked.isspace() else None


def named(where: object, key: str) -> str:
    """The text under this key of an object's metadata.

    Raises:
        Unreadable: there is none.
    """
    if name := text(part(where, "metadata"), key):
        return name
    raise Unreadable(f"metadata.{key}: the object has none")


def whole(value: object) -> int | None:
    """A whole number from 0 to 2^53 - 1; None for anything else."""
    return value if type(value) is int and 0 <= value < MOST else None


def moment(value: object) -> datetime | None:
    """RFC 3339 to a time in UTC. None if it is none, or not between the years 2000 and 2200. A time without a zone counts as UTC."""
    if not isinstance(value, str) or len(value) > TIME:
        return None
    try:
        time = datetime.fromisoformat(value)
        time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return time if EARLIEST <= time < LATEST else None
