"""The simulated cluster of `tests/sim/operator/steering` with one operator, for tests that tell a story: what goes wrong in it is said beforehand.

Its ledger judges every write and every second, as it does in the state machine.
"""

from __future__ import annotations

from steering.finish import left
from steering.leader import Leader
from steering.line import Faults
from steering.world import BEGIN, KEY, MIGRATING, SPEC, World, ready

from sluice_operator.run.shared import ReconcileContext

__all__ = ["BEGIN", "KEY", "MIGRATING", "SPEC", "SimulatedCluster", "assert_nothing_left", "ready"]


class SimulatedCluster(World):
    def __init__(self) -> None:
        super().__init__()
        self.habits.takes_over = 0

    @property
    def operator(self) -> Leader:
        return self.leaders[0]

    @property
    def context(self) -> ReconcileContext:
        return self.operator.context

    @property
    def faults(self) -> Faults:
        return self.operator.faults

    def lose_nodes(self) -> None:
        """No node answers. Programs go on; no pod begins, and none goes."""
        for node in self.nodes.names:
            self.nodes.lose(node, "cut")

    def restore_nodes(self) -> None:
        for node in self.nodes.names:
            self.nodes.restore(node)


def assert_nothing_left(world: SimulatedCluster) -> None:
    assert left(world) == []
