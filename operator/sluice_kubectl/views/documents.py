"""Views as people and scripts get them: words of strangers fit for a screen, and the JSON documents of `-o json`. Pure.

Fields of documents are added in later versions, never renamed.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from sluice_operator.names import camel, printable


def document(value: Any) -> Any:
    """A dataclass as an object with camelCase names, a time as ISO 8601 in UTC; tuples as lists."""
    if is_dataclass(value):
        return {camel(field.name): document(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [document(each) for each in value]
    return stamp(value) if isinstance(value, datetime) else value


def stamp(moment: datetime) -> str:
    """`2026-11-25T12:00:00Z`."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


View = TypeVar("View")


def shown(view: View) -> View:
    """The same dataclass, tuple or text; each text in it is one printable line."""
    return _shown(view)  # type: ignore[no-any-return]


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return tuple(_shown(each) for each in value)
    if isinstance(value, dict):
        return {key: _shown(each) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _shown(getattr(value, field.name)) for field in fields(value)})
    return value
