"""Mutants: rules of the product taken out one at a time, each with what has to notice it.

A check that notices no mutant may be one that cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest

from sluice_checkpoints.protocol.table import Check

Patch = pytest.MonkeyPatch
Apply = Callable[[Patch], None]
M = TypeVar("M", bound="Mutant")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A rule taken out. Each simulation adds what has to notice it.

    Attributes:
        name: what is wrong then.
        apply: takes the rule out.
    """

    name: str
    apply: Apply


def entering(mutants: list[M], made: Callable[[Apply], M]) -> Callable[[Apply], Apply]:
    def entered(apply: Apply) -> Apply:
        mutants.append(made(apply))
        return apply

    return entered


class IgnoreConditions:
    """A checkpoint table that ignores some conditions: `drop` says which of a member's. A check without conditions is left out."""

    def __init__(self, table: Any, drop: Callable[[Any, Any], bool]) -> None:
        self._table, self._drop = table, drop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def write(self, write: Any) -> Any:
        return self._table.write(self._without(write))

    def transact(self, members: Any) -> Any:
        left = [self._without(member) for member in members]
        return self._table.transact([member for member in left if member.when or not isinstance(member, Check)])

    def _without(self, member: Any) -> Any:
        return replace(member, when=tuple(condition for condition in member.when if not self._drop(member, condition)))
