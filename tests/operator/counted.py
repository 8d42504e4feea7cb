"""The simulated cluster, with what its operator called."""

from __future__ import annotations

from collections.abc import Callable

from simulated_cluster import SPEC, SimulatedCluster, ready

from sluice_operator.cluster.port import CONSUMER_KIND

READS = {"get", "list", "check"}


class Counted(SimulatedCluster):
    @property
    def written(self) -> list[str]:
        return [verb for verb, kind in self.faults.done if kind == CONSUMER_KIND and verb not in READS]

    @property
    def listed(self) -> list[str]:
        return [kind for verb, kind in self.faults.done if verb == "list"]

    def costs(self, until: Callable[[], bool]) -> int:
        before = len(self.written)
        assert self.run(120, until=until), self.status
        return len(self.written) - before


def started(spec: dict[str, object] = SPEC) -> Counted:
    """A world with a running consumer, whose figures were written a moment ago."""
    world = Counted()
    world.apply(spec)
    assert world.run(60, until=lambda: ready(world)), world.status
    return world
