"""One-line mutants of the protocol, each a rule taken out, and the invariant that is expected to notice.

A mutant patches the real code (and, where a rule is Spark's part, its simulated fake) through pytest's `monkeypatch`. `habits` narrows the worlds
to those in which the rule matters, so that few examples suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mutants import Apply, IgnoreConditions, Mutant, Patch, entering
from simulation import world

from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import Equals


@dataclass(frozen=True, kw_only=True)
class ProtocolMutant(Mutant):
    """A rule of the protocol taken out.

    Attributes:
        rule: where protocol.md or migration.md says otherwise: a heading, and the rule.
        stories: those of `stories` that catch it, whatever the machine does.
        hunted: the machine finds it too, within a few seconds.
        rare: that takes minutes; `make test-deep` hunts it.
        harmless: why nothing breaks without this rule alone.
        rules: the machine's rules that may bring it to light, beside `put` and `work`; none: all of them.
        world: habits of the worlds to look in: those in which the rule matters.
    """

    rule: str
    stories: tuple[str, ...]
    hunted: bool
    rare: bool
    harmless: str
    rules: frozenset[str]
    world: Mapping[str, Any]


MUTANTS: list[ProtocolMutant] = []


def mutant(
    name: str, rule: str, stories: str = "", rules: str = "", *, hunted: bool = False, rare: bool = False, harmless: str = "", **habits: Any
) -> Callable[[Apply], Apply]:
    proof = {
        "stories": tuple(stories.split()),
        "hunted": hunted,
        "rare": rare,
        "harmless": harmless,
        "rules": frozenset(rules.split()),
        "world": habits,
    }
    return entering(MUTANTS, lambda apply: ProtocolMutant(name=name, apply=apply, rule=rule, **proof))  # type: ignore[arg-type]  # of one dictionary


def ignoring(store: Any, drop: Callable[[Any], bool]) -> Any:
    return type(store)(IgnoreConditions(store.table, lambda _member, condition: drop(condition)))


def without_condition(patch: Patch, method: str, drop: Callable[[Any], bool], kind: Any = CheckpointStore) -> None:
    real = getattr(kind, method)
    patch.setattr(kind, method, lambda self, *args: real(ignoring(self, drop), *args))


def write_without(patch: Patch, module: Any, write: str, dropped: set[str]) -> None:
    """Takes conditions on these attributes out of a write that a module calls: a function of a store."""
    real = getattr(module, write)

    def drops(condition: Any) -> bool:
        return isinstance(condition, Equals) and condition.path[0] in dropped

    patch.setattr(module, write, lambda store, *args: real(ignoring(store, drops), *args))


def clock_of(patch: Patch) -> Callable[[], int]:
    """The clock of the world that was made last, for mutants of code that has none."""
    worlds: list[world.World] = []
    real = world.World.__init__

    def init(self: world.World, *args: Any) -> None:
        real(self, *args)
        worlds[:] = [self]

    patch.setattr(world.World, "__init__", init)
    return lambda: worlds[0].stream.now()  # noqa: PLW0108 - the world is made later
