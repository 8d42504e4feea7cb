"""A person's `reset`: the real resetter in steps, of a table on which a driver may work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulation.migration import Job
from simulation.ports import UNAVAILABLE, Catalog, Client
from simulation.stream import Stream
from simulation.turnstile import Process, Waiting

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.positions.ports import ResetPorts
from sluice_checkpoints.positions.resetter import Resetter
from sluice_checkpoints.positions.target import ResetRequest
from sluice_checkpoints.protocol.store import CheckpointStore

if TYPE_CHECKING:
    from simulation.world import World

LEASE_MILLIS = 12_000


@dataclass(frozen=True)
class Records:
    process: Process
    stream: Stream

    def since(self, shard_ids: Iterable[str], millis: int) -> frozenset[str]:
        if self.process.pause("look for records") == UNAVAILABLE:
            raise ServiceUnavailable("look for records: injected")
        return self.stream.since(shard_ids, millis)


class Reset(Job):
    """One run of the command. To the scheduler it is an epoch without a driver."""

    def __init__(self, world: World, number: int, request: ResetRequest) -> None:
        super().__init__(world, number)
        self.request = request
        self.host = Process(f"reset {number}", self._run)

    def _run(self, host: Process) -> None:
        world = self.world

        def sleep(seconds: float) -> None:
            host.pause("sleep", Waiting(wake=world.now() + seconds))

        client = Client(host, world.table, world.now, world.habits.picks)
        catalog = Catalog(host, world.stream, late=False)
        ports = ResetPorts(CheckpointStore(client), catalog, Records(host, world.stream), world.now, sleep, host.name)
        Resetter(self.request, ports).run()
