"""What a condition says, before it has a time. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConditionValue:
    """Status (True, False or Unknown), reason and message of a condition."""

    status: str
    reason: str
    message: str = ""
