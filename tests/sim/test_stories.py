from __future__ import annotations

from collections.abc import Iterator

import pytest
from simulation.every import MUTANTS, STORIES, ProtocolMutant
from simulation.world import World


@pytest.fixture
def told() -> Iterator[list[World]]:
    worlds: list[World] = []
    yield worlds
    for world in worlds:
        world.end()


def broken(name: str, told: list[World]) -> list[tuple[str, str]]:
    world = STORIES[name]()
    told.append(world)
    if not world.ledger.broken:
        world.finish()
    return world.ledger.broken


@pytest.mark.parametrize("name", STORIES)
def test_the_protocol_bears(name: str, told: list[World]) -> None:
    """No invariant breaks, and everything is delivered."""
    assert broken(name, told) == []


TOLD = [(mutant, name) for mutant in MUTANTS for name in mutant.stories]


@pytest.mark.parametrize(("mutant", "name"), TOLD, ids=[f"{s.name}: {name}" for s, name in TOLD])
def test_the_story_catches(mutant: ProtocolMutant, name: str, told: list[World], monkeypatch: pytest.MonkeyPatch) -> None:
    """With this rule taken out, this schedule breaks an invariant."""
    mutant.apply(monkeypatch)
    assert broken(name, told)
