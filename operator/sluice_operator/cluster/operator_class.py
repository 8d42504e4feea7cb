"""Whose a KinesisConsumer is: of several operators in a cluster, the one of its class. Pure.

An operator of the class "" has those without the label, so a single one needs none.
"""

from __future__ import annotations

from typing import Any

CLASS = "sluice.dev/class"

Json = dict[str, Any]


def belongs(body: Json, own: str) -> bool:
    """Whether an operator of this class looks after the resource."""
    return ((body["metadata"].get("labels") or {}).get(CLASS) or "") == own


def selector(own: str) -> str:
    """The same, for a list."""
    return f"{CLASS}={own}" if own else f"!{CLASS}"
