"""What a driver reports to the operator: one frozen value, and its text (docs/interfaces.md, "Report (JSON, driver → operator)").

The operator has its own words for the same. `tests/contract/programs` holds the two together.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from sluice_checkpoints.names import camel


class ReportPhase(StrEnum):
    """What the driver does."""

    WAITING_OUT_LEASE = "WaitingOutLease"
    STARTING = "Starting"
    STANDING_BY = "StandingBy"
    RUNNING = "Running"
    IDLE = "Idle"
    DRAINING = "Draining"


class WarningReason(StrEnum):
    """What a warning is about. Each is a condition of the resource, but `BATCH_SLOW`: that is said in the log and counted, and not reported.

    The report leaves all but the first two out again when their cause ends.
    """

    DATA_LOSS_SUSPECTED = "DataLossSuspected"
    POISON_EXCLUDED = "PoisonExcluded"
    SOURCE_MOVED = "SourceMoved"
    RETENTION_NEAR = "RetentionNear"
    ISOLATING = "Isolating"
    BATCH_SLOW = "BatchSlow"


@dataclass(frozen=True, slots=True)
class DriverWarning:
    """One warning; its text, as everybody reads it, is `"<reason>: <text>"`."""

    reason: WarningReason
    text: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.text}"


@dataclass(frozen=True, slots=True)
class ExecutorDrain:
    """An executor on its way out, by its pod's name."""

    pod: str
    since: datetime
    deadline: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecVersion:
    """A version of the spec, as the table names it (docs/protocol.md, "Versions"). None: not known, or there was none.

    Attributes:
        first_batch: the first batch that it commits; it may have committed none.
        since: when its driver named it, by that driver's clock.
        hash: of the spec. image: of the driver. reset: the last reset then.
    """

    first_batch: int
    since: datetime | None = None
    hash: str | None = None
    image: str | None = None
    reset: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReport:
    """All fields of a report but its number. None: not known, or there is none; the text leaves it out.

    Attributes:
        deadline: when the lease is waited out, ISO 8601.
        batch: the last one that is committed. open_batch: the one that `process` has.
        held_shards: those whose rows carry this epoch's generation or are at END.
        executors: those that Spark knows.
        dead_letters: how many records were ever excluded.
        busy: part of the last minute in which a batch was worked on. active_shards: those that gave records in that time (`metrics.load`).
        versions: the last ones that the table names, the newest first.
        farthest_shard: the open shard that is farthest behind. millis_behind_others: the farthest of all other open shards.
    """

    phase: ReportPhase = ReportPhase.STARTING
    deadline: str | None = None
    generation: int | None = None
    batch: int | None = None
    open_batch: int | None = None
    open_shards: int | None = None
    ended_shards: int | None = None
    held_shards: int | None = None
    executors: int | None = None
    draining: tuple[ExecutorDrain, ...] | None = None
    millis_behind_latest: int | None = None
    records_per_second: float | None = None
    records: int | None = None
    dead_letters: int | None = None
    busy: float | None = None
    active_shards: int | None = None
    farthest_shard: str | None = None
    millis_behind_others: int | None = None
    warnings: tuple[DriverWarning, ...] | None = None
    versions: tuple[SpecVersion, ...] | None = None

    def text(self, number: int) -> str:
        """The JSON of the annotation."""
        return json.dumps({"number": number, **_known(self)}, default=_plain)

    @property
    def readiness(self) -> tuple[ReportPhase, bool]:
        """What the operator waits for: a change of it is written at once."""
        return self.phase, bool(self.executors)


def _known(value: DriverReport | SpecVersion) -> dict[str, Any]:
    return {camel(field.name): known for field in fields(value) if (known := getattr(value, field.name)) is not None}


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, SpecVersion):
        return _known(value)
    return asdict(value) if isinstance(value, ExecutorDrain) else str(value)
