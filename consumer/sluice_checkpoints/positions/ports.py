"""What a reset needs from outside: the table, the stream, time, and a listener."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sluice_checkpoints.migrate.ports import MigrationProgress
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.stream.model import PositionCatalog, RecentRecords


@dataclass(frozen=True)
class ResetPorts:
    """The ports.

    Attributes:
        records: finds out which closed shards hold a record since a time.
        clock, sleep: monotonic seconds, and a pause.
        holder, at: the holder of the lease during the reset and the time, for people.
        owner: whose table it has to be; None: whoever the row names, because a person named the table.
        table_id: which DynamoDB table it is; None: not known. A copy of another table is refused.
    """

    store: CheckpointStore
    catalog: PositionCatalog
    records: RecentRecords
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    holder: str = "reset"
    at: str = ""
    owner: Owner | None = None
    table_id: str | None = None
    progress: MigrationProgress = field(default_factory=MigrationProgress)
