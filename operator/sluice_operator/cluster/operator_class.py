"""Which of several operators in a cluster a KinesisConsumer belongs to: the one of its class. Pure.

Resources without the label belong to the operator of class "", so a single operator needs no class.
"""

from __future__ import annotations

from typing import Any

from sluice_operator.untrusted.values import part, text

CLASS = "sluice.dev/class"

Json = dict[str, Any]


def belongs(body: Json, own: str) -> bool:
    """Whether the resource belongs to an operator of this class."""
    return (text(part(body, "metadata", "labels"), CLASS) or "") == own


def selector(own: str) -> str:
    """The label selector of the resources that belong to an operator of this class."""
    return f"{CLASS}={own}" if own else f"!{CLASS}"
