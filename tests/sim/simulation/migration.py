"""A migration Job: the real migrator in steps, from a table of KCL into the table that a driver's epoch may be about to begin on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simulation.ports import UNAVAILABLE, Catalog, Client
from simulation.stream import Stream
from simulation.turnstile import Process, Waiting

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.formats.snapshot import TableKey
from sluice_checkpoints.migrate.migrator import Migrator
from sluice_checkpoints.migrate.ports import MigrationPorts as Ports
from sluice_checkpoints.migrate.ports import MigrationRequest, PreparedTarget
from sluice_lab.fakes.migration import MemorySources

if TYPE_CHECKING:
    from simulation.world import World

SOURCE = "orders-kcl"
LEASE = 30.0  # seconds, of the claim


def kcl_table(stream: Stream, read: Mapping[str, int]) -> dict[str, Any]:
    """KCL's table after so many user records of each shard were read: a place may lie inside an aggregate."""
    rows = []
    for shard in stream.open_shards:
        log, done = stream.log[stream.created_millis, shard], read.get(shard, 0)
        last = log[:done][-1:]
        place = (str(last[0].number), last[0].sub) if last else ("TRIM_HORIZON", 0)
        numbers = {"checkpointSubSequenceNumber": place[1], "leaseCounter": 7, "ownerSwitchesSinceCheckpoint": 0}
        rows.append({"leaseKey": {"S": shard}, "checkpoint": {"S": place[0]}} | {name: {"N": str(value)} for name, value in numbers.items()})
    return {SOURCE: ((TableKey("leaseKey", "HASH", "S"),), rows)}


class Targets:
    """Where the migrator finds its target: the table is there, as the operator's and the driver's are. Implements `Targets`."""

    def __init__(self, process: Process, client: Client) -> None:
        self._process, self._client = process, client

    def find(self, _name: str) -> Client:
        self._process.pause("find")
        return self._client

    def ensure(self, _name: str) -> PreparedTarget:
        self._process.pause("ensure")
        return PreparedTarget(self._client)


class Job:
    """One pod of a migration Job. To the scheduler it is an epoch without a driver."""

    driver = engine = heart = taken = frozen_at = consumer = None
    cut = working = audit = draining = False

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.host = Process(f"job {number}", self._run)

    def _run(self, host: Process) -> None:
        world = self.world

        def read(_when: str, operation: str, _table: object) -> None:
            if host.pause(operation) == UNAVAILABLE:
                raise ServiceUnavailable(f"{operation}: injected")

        def sleep(seconds: float) -> None:
            host.pause("sleep", Waiting(wake=world.now() + seconds))

        tokens = iter(f"{host.name} token {number}" for number in range(9))
        ports = Ports(
            MemorySources(world.source_tables, read),
            Catalog(host, world.stream),
            Targets(host, Client(host, world.table, world.now)),  # type: ignore[arg-type]  # a client is a table
            world.now,
            sleep,
            lambda: next(tokens),
        )
        Migrator(MigrationRequest(SOURCE, world.table.name, lease_millis=round(LEASE * 1000)), ports).run()

    @property
    def over(self) -> bool:
        return self.host.done

    def kill_driver(self) -> None:
        """It has none."""
