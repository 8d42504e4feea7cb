"""What an export needs from outside: Sluice's table, the stream, the other system's tables, time, and somebody to tell."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sluice_checkpoints.foreign import ForeignTables
from sluice_checkpoints.migration_world import Progress
from sluice_checkpoints.store import CheckpointStore
from sluice_checkpoints.stream import PlaceCatalog


@dataclass(frozen=True, slots=True)
class Request:
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
class World:
    """The ports.

    Attributes:
        clock, sleep: monotonic seconds, and a pause.
        holder: who holds the lease meanwhile, for people.
    """

    store: CheckpointStore
    catalog: PlaceCatalog
    foreign: ForeignTables
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    holder: str = "export"
    progress: Progress = field(default_factory=Progress)
