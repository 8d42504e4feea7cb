"""What an export needs from outside: Sluice's table, the stream, the other system's tables, time, and a listener."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sluice_checkpoints.formats.writer import TargetTables
from sluice_checkpoints.migrate.ports import MigrationProgress
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.stream.model import PassedRecords, PositionCatalog


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """One export as it was asked for.

    Attributes:
        format: a writer's name.
        to: the other system's table.
        quiet_seconds: how long that must be seen unchanged; None: what its format needs.
        lease_millis: how long the consumer's lease is promised to be silent after this program's last heartbeat.
    """

    format: str
    to: str
    quiet_seconds: float | None = None
    lease_millis: int = 60_000


@dataclass(frozen=True)
class ExportPorts:
    """The ports.

    Attributes:
        clock, sleep: monotonic seconds, and a pause.
        holder: the holder of the lease during the export, for people.
        records: finds out which records are gone. None: they count as still there.
    """

    store: CheckpointStore
    catalog: PositionCatalog
    targets: TargetTables
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    holder: str = "export"
    progress: MigrationProgress = field(default_factory=MigrationProgress)
    records: PassedRecords | None = None
