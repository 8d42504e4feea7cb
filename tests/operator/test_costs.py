"""What a change costs the API server, beside the pods and Jobs it is about: status writes are counted, patches of the resource too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from operator_world import MIGRATING, SPEC, World, ready

STATUS = ("status", "KinesisConsumer")


class Counted(World):
    """The world, with a list of the writes onto the resource."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str]] = []
        super().__init__()

    def _after_write(self, verb: str, kind: str) -> None:
        if kind == "KinesisConsumer":
            self.written.append((verb, kind))
        super()._after_write(verb, kind)

    def costs(self, until: Callable[[], bool]) -> int:
        """Writes onto the resource until it is so."""
        before = len(self.written)
        assert self.run(120, until=until), self.status
        return len(self.written) - before


def started(spec: dict[str, object] = SPEC) -> Counted:
    """A world with a running consumer, whose figures were written a moment ago."""
    world = Counted()
    world.apply(spec)
    assert world.run(60, until=lambda: ready(world)), world.status
    return world


@pytest.mark.parametrize(("spec", "writes"), [(SPEC, 4), (MIGRATING, 6)])
def test_a_first_start_costs_one_write_a_step(spec: dict[str, object], writes: int) -> None:
    """Accepted and its finalizer; the migration's intent and end; the driver's intent; Ready."""
    world = Counted()
    world.apply(spec)
    assert world.costs(lambda: ready(world)) <= writes


@pytest.mark.parametrize("replicas", [1, 5])
def test_scaling_costs_two_status_writes(replicas: int) -> None:
    """The intent, and that it is reached; however many executors come or go."""
    world = started()
    world.apply({**SPEC, "replicas": replicas})
    assert world.costs(lambda: ready(world) and len(world.executors()) == replicas) <= 2


def test_a_restart_costs_three_status_writes() -> None:
    """Drain, next attempt, Ready: the first two have to stand before anything is done. What comes between is told with them."""
    world = started()
    world.apply({**SPEC, "batch": {"intervalSeconds": 9}})
    assert world.costs(lambda: ready(world) and world.status["driver"]["attempt"] == 2) <= 3


def test_a_suspension_costs_two_status_writes() -> None:
    """Drain, Suspended."""
    world = started()
    world.apply({**SPEC, "suspend": True})
    assert world.costs(lambda: world.status["phase"] == "Suspended") <= 2
