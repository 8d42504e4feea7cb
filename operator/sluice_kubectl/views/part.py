"""Objects of a cluster, read totally: whatever a field contains, a value within bounds is read, and anything else is noted. Pure.

The bounds are the operator's (`sluice_operator.untrusted`). What is not there is None and no fault; what is there and unreadable is one row's matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import Any, TypeVar

from sluice_operator.untrusted import values

Value = TypeVar("Value")
MESSAGE = 32_768  # characters: as many as a condition may have
NOTED = 5  # fields that a row names
UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class ObjectPart:
    """An object at a path of another one. `unreadable` is shared by all parts of one object."""

    value: dict[str, Any]
    path: str = ""
    unreadable: list[str] = field(default_factory=list)

    @classmethod
    def whole(cls, body: object) -> ObjectPart:
        """An object as the API server gave it."""
        return cls(body) if isinstance(body, dict) else cls({}, "", ["object"])

    def noted(self) -> tuple[str, ...]:
        """Paths of the first five fields that could not be read."""
        return tuple(dict.fromkeys(self.unreadable))[:NOTED]

    def has(self, key: str) -> bool:
        """Whether it is there at all."""
        return self.value.get(key) is not None

    def part(self, *keys: str) -> ObjectPart:
        """The object at this path below; an empty one if there is none."""
        below = self
        for key in keys:
            below = ObjectPart(below._read(key, _object) or {}, below._at(key), self.unreadable)
        return below

    def parts(self, key: str) -> list[ObjectPart]:
        """The objects of a list."""
        items = self._read(key, _list) or []
        if any(not isinstance(each, dict) for each in items):
            self._note(key)
        return [ObjectPart(each, f"{self._at(key)}[{at}]", self.unreadable) for at, each in enumerate(items) if isinstance(each, dict)]

    def text(self, key: str) -> str | None:
        """A text; longer ones are cut."""
        return self._read(key, _text)

    def must(self, key: str) -> str:
        """A text that each such object has; `?` if this one has none."""
        if value := self.text(key):
            return value
        self._note(key)
        return UNKNOWN

    def count(self, key: str) -> int | None:
        """A whole number of 0 or more."""
        return self._read(key, values.whole)

    def code(self, key: str) -> int | None:
        """A whole number of either sign."""
        return self._read(key, _code)

    def number(self, key: str) -> float | None:
        """A finite number."""
        return self._read(key, _number)

    def time(self, key: str) -> datetime | None:
        """A time between the years 2000 and 2200."""
        return self._read(key, values.moment)

    def flag(self, key: str) -> bool:
        """Whether it is true."""
        return self._read(key, _flag) is True

    def _read(self, key: str, reading: Callable[[object], Value | None]) -> Value | None:
        if not self.has(key):
            return None
        value = reading(self.value[key])
        if value is None:
            self._note(key)
        return value

    def _note(self, key: str) -> None:
        self.unreadable.append(self._at(key))

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def uid_of(body: object) -> str:
    """The uid of an object; `?` if it has none."""
    return ObjectPart.whole(body).part("metadata").must("uid")


def name_of(body: object) -> str:
    """The name of an object; `?` if it has none."""
    return ObjectPart.whole(body).part("metadata").must("name")


def _object(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _list(value: object) -> list[Any] | None:
    return value if isinstance(value, list) else None


def _text(value: object) -> str | None:
    return value[:MESSAGE] if isinstance(value, str) else None


def _code(value: object) -> int | None:
    return value if type(value) is int and abs(value) < values.MOST else None


def _number(value: object) -> float | None:
    return value if type(value) in {int, float} and isfinite(value) and abs(value) < values.MOST else None  # type: ignore[arg-type, return-value]


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
