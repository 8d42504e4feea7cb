"""A person's `adopt --owner`: the real handover in steps, of a table on which a driver may work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulation.migration import Job
from simulation.ports import Client
from simulation.turnstile import Process, Waiting

from sluice_checkpoints.protocol import lease
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.store import CheckpointStore

if TYPE_CHECKING:
    from simulation.world import World

CLUSTER = ("c1",)
OWNER, OTHER = "shop/orders", "shop/copy-of-orders"


class Handover(Job):
    """One run of the command. To the scheduler it is an epoch without a driver."""

    def __init__(self, world: World, number: int, to: str) -> None:
        super().__init__(world, number)
        self.to = to
        self.host = Process(f"handover {number}", self._run)

    def _run(self, host: Process) -> None:
        def sleep(seconds: float) -> None:
            host.pause("sleep", Waiting(wake=self.world.now() + seconds))

        store = CheckpointStore(Client(host, self.world.table, self.world.now))
        claim = LeaseRequest(12_000, host.name, "", owner=Owner(self.to, CLUSTER))
        lease.hand_over(store, claim, Watcher(self.world.now, sleep))
