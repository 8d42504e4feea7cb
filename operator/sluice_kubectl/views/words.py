"""Words of strangers, made fit for a screen: the last step of each view. Pure."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from sluice_operator.names import printable

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
