"""One-line sabotages of the protocol, each a rule taken out, and the invariant that is expected to notice.

A sabotage patches the real code (and, where a rule is Spark's part, its simulated twin) through pytest's `monkeypatch`. `habits` narrows the worlds
to those in which the rule matters, so that few examples suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from simulation import world

from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import Check

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Sabotage:
    """A rule taken out.

    Attributes:
        name: what is wrong then.
        rule: where protocol.md or migration.md says otherwise: a heading, and the rule.
        apply: takes the rule out.
        stories: those of `stories` that catch it, whatever the machine does.
        hunted: the machine finds it too, within a few seconds.
        harmless: why nothing breaks without this rule alone.
        rules: the machine's rules that may bring it to light, beside `put` and `work`; none: all of them.
        world: habits of the worlds to look in: those in which the rule matters.
    """

    name: str
    rule: str
    apply: Callable[[Patch], None]
    stories: tuple[str, ...]
    hunted: bool
    harmless: str
    rules: frozenset[str]
    world: Mapping[str, Any]


SABOTAGES: list[Sabotage] = []


def sabotage(
    name: str, rule: str, stories: str = "", rules: str = "", *, hunted: bool = False, harmless: str = "", **habits: Any
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Enters a function into the list."""

    def enter(apply: Callable[[Patch], None]) -> Callable[[Patch], None]:
        SABOTAGES.append(Sabotage(name, rule, apply, tuple(stories.split()), hunted, harmless, frozenset(rules.split()), habits))
        return apply

    return enter


def deaf(store: Any, drop: Callable[[Any], bool]) -> Any:
    """A store of the same kind over a table that overhears some conditions; a check of nothing is left out."""

    class Deaf:
        def __init__(self, table: Any) -> None:
            self._table = table

        def __getattr__(self, name: str) -> Any:
            return getattr(self._table, name)

        def write(self, write: Any) -> Any:
            return self._table.write(self._heard(write))

        def transact(self, members: Any) -> Any:
            heard = [self._heard(member) for member in members]
            return self._table.transact([member for member in heard if member.when or not isinstance(member, Check)])

        def _heard(self, member: Any) -> Any:
            return replace(member, when=tuple(c for c in member.when if not drop(c)))

    return type(store)(Deaf(store.table))


def without_condition(patch: Patch, method: str, drop: Callable[[Any], bool], kind: Any = CheckpointStore) -> None:
    """Takes conditions out of the writes that one method of a store makes."""
    real = getattr(kind, method)
    patch.setattr(kind, method, lambda self, *args: real(deaf(self, drop), *args))


def clock_of(patch: Patch) -> Callable[[], int]:
    """The clock of the world that was made last, for sabotages of code that has none."""
    worlds: list[world.World] = []
    real = world.World.__init__

    def init(self: world.World, *args: Any) -> None:
        real(self, *args)
        worlds[:] = [self]

    patch.setattr(world.World, "__init__", init)
    return lambda: worlds[0].stream.now()  # noqa: PLW0108 - the world is made later
