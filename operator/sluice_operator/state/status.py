"""`.status` of a KinesisConsumer, as frozen values: the operator's write-ahead log.

An action is recorded here before it is done. No I/O, no clock and no third-party package.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sluice_operator.names import camel


class CamelCase:
    """Base of values that are stored in `.status`; pydantic takes the names on the wire from here."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {"alias_generator": camel, "use_attribute_docstrings": True}


class Phase(StrEnum):
    """One word for people. Computed from the rest on every pass, never read back."""

    PENDING = "Pending"
    MIGRATING = "Migrating"
    STARTING = "Starting"
    RUNNING = "Running"
    DRAINING = "Draining"
    IDLE = "Idle"
    SUSPENDED = "Suspended"
    BACKING_OFF = "BackingOff"
    FAILED = "Failed"
    DELETING = "Deleting"


class MigrationState(StrEnum):
    """Where the present try of the migration is; COMPLETE is final."""

    RUNNING = "Running"
    SOURCE_ACTIVE = "SourceActive"
    LOST = "Lost"
    STOPPED = "Stopped"
    FAILED = "Failed"
    COMPLETE = "Complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit(CamelCase):
    """How a driver or a migration ended: exit code (None: never seen), one word, and its own words."""

    code: int | None = None
    reason: str
    message: str = ""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving(CamelCase):
    """The driver before: the one that the status names is made when this one has ended its work. `why` it was asked to."""

    attempt: int
    pod: str
    uid: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStatus(CamelCase):
    """The present attempt (`pod` set) or the last one (`pod` None). `uid` is None until the pod was seen, `leaving` from then on.

    `generation` is the newest that any attempt has reported: with it there is a checkpoint table, which no driver may make again.
    `restart` is the honoured annotation.
    """

    attempt: int = 0
    pod: str | None = None
    uid: str | None = None
    spec_hash: str | None = None
    restart: str | None = None
    forced: bool = False
    stopping: str | None = None
    started_at: datetime | None = None
    generation: int | None = None
    exit: Exit | None = None
    leaving: Leaving | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStatus(CamelCase):
    """The gate's memory. `hash` names the Job, `spec_hash` covers all the Job would run, `retry` is the honoured annotation.

    `podless_since` is when the running Job was first seen without a pod.
    """

    hash: str
    spec_hash: str
    job: str
    tries: int
    state: MigrationState = MigrationState.RUNNING
    uid: str | None = None
    podless_since: datetime | None = None
    rows: int | None = None
    warnings: int | None = None
    message: str = ""
    retry: str | None = None
    finished_at: datetime | None = None
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStatus(CamelCase):
    """An executor that ends its tasks before it leaves."""

    pod: str
    since: datetime | None = None
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatus(CamelCase):
    """Figures of the driver's last report; `reported_at` is the operator's time of seeing its `number` first.

    `open_batch` is the batch that is being processed, `batch_at` the operator's time of seeing it first. `dead_letters` counts the records that
    were ever left out, over all drivers. `lag` is `millis_behind_latest` for people, such as 2m13s.
    """

    number: int = 0
    open_shards: int = 0
    ended_shards: int = 0
    held_shards: int = 0
    batch: int = 0
    open_batch: int | None = None
    batch_at: datetime | None = None
    millis_behind_latest: int | None = None
    lag: str | None = None
    records_per_second: float | None = None
    records: int | None = None
    dead_letters: int | None = None
    reported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartStatus(CamelCase):
    """`count` failures and `interruptions` (evictions, leases held) since the last stable run; only the first is a budget.

    `reason` and `message` are the last end's. `refused` is the hash of a spec that a driver refused, until one works.
    """

    count: int = 0
    interruptions: int = 0
    reason: str | None = None
    message: str | None = None
    refused: str | None = None
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition(CamelCase):
    """As in metav1.Condition."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime
    observed_generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(CamelCase):
    """`.status`, the operator's write-ahead log: an action is recorded here before it is done.

    `progressing_since` is when the present way to what the spec asks for began; spec.progressDeadlineSeconds counts from it.
    """

    observed_generation: int = 0
    phase: Phase = Phase.PENDING
    conditions: tuple[Condition, ...] = ()
    replicas: int = 0
    selector: str = ""
    driver: DriverStatus = field(default_factory=DriverStatus)
    migration: MigrationStatus | None = None
    draining: tuple[DrainStatus, ...] = ()
    stream: StreamStatus | None = None
    restarts: RestartStatus = field(default_factory=RestartStatus)
    progressing_since: datetime | None = None
    last_good_spec: dict[str, Any] | None = None

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, or None where it is absent."""
        return next((item for item in self.conditions if item.type == kind), None)
