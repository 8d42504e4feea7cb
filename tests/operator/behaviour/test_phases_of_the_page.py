"""The picture of phases in docs/reference/status.md shows ways that a resource takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scenarios import reach
from simulated_cluster import MIGRATING, SPEC, SimulatedCluster

from sluice_operator.state.status import Phase

Json = dict[str, Any]
PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "status.md").read_text()
DRAWN = set(re.findall(r"(?m)^  (\w+|\[\*\]) --> (\w+)", PAGE))
BEGIN = "[*]"


class Watched(SimulatedCluster):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, str]] = set()
        self.last = BEGIN

    def tick(self) -> None:
        super().tick()
        phase = self.status.get("phase", BEGIN)
        if phase != self.last:
            self.seen.add((self.last, phase))
            self.last = phase

    def shows(self, phase: str) -> Callable[[], bool]:
        return lambda: bool(self.status.get("phase") == phase)

    def meets(self, phase: str, spec: Json = MIGRATING) -> None:
        assert self.run(120, until=self.shows(phase)), self.status
        self.apply(spec)
        reach(self)


def lived() -> set[tuple[str, str]]:
    """What a resource goes through that migrates, fails, is repaired, restarted, suspended, scaled to zero; one that is moved; one that ends."""
    world = Watched()
    world.habits.job_exits = [65]
    world.apply(MIGRATING)
    assert world.run(60, until=world.shows("Failed"))
    world.annotate(retry="1")
    reach(world)
    world.apply({**MIGRATING, "batch": {"intervalSeconds": 9}})
    reach(world)
    world.habits.exits = [1]
    world.meets("BackingOff")
    world.habits.exits = [65]
    world.meets("Failed", {**MIGRATING, "batch": {"intervalSeconds": 8}})
    world.apply({**MIGRATING, "suspend": True})
    world.meets("Suspended")
    world.apply({**MIGRATING, "replicas": 0})
    world.meets("Idle")
    other = Watched()
    other.apply(SPEC)
    reach(other)
    other.apply({**SPEC, "position": {"id": "one", "to": {"latest": True}}})
    reach(other)
    ending = Watched()
    ending.apply({**SPEC, "until": {"tip": True}})
    ending.meets("Completed", SPEC)
    return world.seen | other.seen | ending.seen


def test_every_way_in_the_picture_is_taken() -> None:
    """Pending takes less than the second between two looks: what follows the beginning at once has come through it."""
    seen = lived()
    begun = {("Pending", after) for before, after in seen if before == BEGIN} | {(BEGIN, "Pending")}
    assert seen | begun >= DRAWN


def test_the_picture_has_every_phase_but_the_one_that_follows_from_all() -> None:
    assert {phase for way in DRAWN for phase in way} - {BEGIN} == {str(phase) for phase in Phase} - {"Deleting"}
