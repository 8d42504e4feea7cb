"""What a migrator needs from outside: source, stream, target, time, and a listener. All of it has an in-memory fake (`sluice_lab.fakes`)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sluice_checkpoints.formats.detect import AUTO
from sluice_checkpoints.formats.snapshot import SourceTables
from sluice_checkpoints.migrate.placement import place_text
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import Item
from sluice_checkpoints.protocol.table import Table
from sluice_checkpoints.stream.model import PositionCatalog


@dataclass(frozen=True, slots=True)
class MigrationRequest:
    """One migration as it was asked for.

    Attributes:
        source, target: table names in one account and region.
        format: a reader's name, or `auto`.
        unstarted, timestamp_millis, ignored, rows, places: see `placement.Choices`.
        quiet_seconds: how long the source must be seen unchanged; None: what the format needs.
        lease_millis: how long the claim is promised to be silent after its last heartbeat.
    """

    source: str
    target: str
    format: str = AUTO
    unstarted: str | None = None
    timestamp_millis: int | None = None
    quiet_seconds: float | None = None
    lease_millis: int = 30_000
    ignored: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    places: Mapping[str, Position] = field(default_factory=dict)

    @property
    def choices(self) -> Item:
        """The options that decide where shards start, by their names on the command line; those that were not given are missing."""
        places = [f"{shard}={place_text(self.places[shard])}" for shard in sorted(self.places)]
        given: Item = {"unstarted": self.unstarted, "timestamp": self.timestamp_millis}
        given |= {"ignore-attribute": sorted(set(self.ignored)) or None, "ignore-row": sorted(set(self.rows)) or None, "place": places or None}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class PreparedTarget:
    """The target, ready for reads and writes, and what could not be had (point-in-time recovery, deletion protection)."""

    table: Table
    warnings: tuple[str, ...] = ()


class Targets(Protocol):
    """Where target tables come from. Nothing is ever deleted."""

    def find(self, name: str) -> Table | None:
        """The table, if it exists. Only reads.

        Raises:
            Refused: it has another key than ours.
        """
        ...

    def ensure(self, name: str) -> PreparedTarget:
        """The table, made if it does not exist, once it answers a strongly consistent read.

        Raises:
            Refused: it has another key than ours, or access is denied.
            ServiceUnavailable: it did not become ready in time.
        """
        ...


class MigrationProgress:
    """Receives what happens; it prints nothing."""

    def step(self, text: str) -> None:
        """A step begins."""

    def waiting(self, seconds: float, why: str) -> None:
        """A wait begins that lasts up to so many seconds."""

    def wrote(self, rows: int, of: int) -> None:
        """So many rows of the plan are in the target."""


@dataclass(frozen=True)
class MigrationPorts:
    """The ports.

    Attributes:
        clock, sleep: monotonic seconds, and a pause.
        token: a random text, for claims and the consumer's id.
    """

    sources: SourceTables
    catalog: PositionCatalog
    targets: Targets
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    token: Callable[[], str] = lambda: secrets.token_hex(16)
    progress: MigrationProgress = field(default_factory=MigrationProgress)
