"""Values as JSON documents: what `-o json` prints. Fields are added in later versions, never renamed. Pure."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from sluice_operator.names import camel


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
