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
    COMPLETED = "Completed"
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
    """Exit code. Absent if the operator did not see it."""
    reason: str
    """Reason in one word, such as Failed, OOMKilled or LeaseLost."""
    message: str = ""
    """Exit message."""
    at: datetime
    """Time at which it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving(CamelCase):
    """The previous driver, while it finishes its work. The driver in the status is created afterwards."""

    attempt: int
    """Number of the driver."""
    pod: str
    """Name of its pod."""
    uid: str
    """Uid of its pod."""
    why: str
    """Reason for stopping it, such as SpecChanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStatus(CamelCase):
    """The present driver (`pod` set) or the last one (`pod` None).

    `uid` is None until the pod was seen, `leaving` from then on. With a `generation` no driver may make the checkpoint table again.
    """

    attempt: int = 0
    """Number of the current driver, or of the last one. Each driver's number is one higher than that of the previous driver."""
    pod: str | None = None
    """Name of its pod. Absent if the driver has ended."""
    uid: str | None = None
    """Uid of its pod, once the pod was seen."""
    spec_hash: str | None = None
    """Hash of the fields of the spec that the driver runs."""
    restart: str | None = None
    """Value of the annotation sluice.dev/restart that this driver was started for."""
    forced: bool = False
    """Whether the previous driver was removed by the annotation sluice.dev/force."""
    stopping: str | None = None
    """Reason for stopping the driver."""
    started_at: datetime | None = None
    """Time at which its pod was created."""
    generation: int | None = None
    """Newest generation of the lease that a driver has reported. If it is set, the checkpoint table exists."""
    exit: Exit | None = None
    """How the last driver ended."""
    leaving: Leaving | None = None
    """The previous driver, while it finishes its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStatus(CamelCase):
    """The migration gate's memory: no driver is made before its state is Complete."""

    hash: str
    """Hash of source, format and target. It is part of the Job's name."""
    spec_hash: str
    """Hash of everything that the Job runs. If it changes, a failed migration is retried."""
    job: str
    """Name of the Job of this try."""
    tries: int
    """Number of tries so far."""
    state: MigrationState = MigrationState.RUNNING
    """State of this try. Complete is final."""
    uid: str | None = None
    """Uid of the Job, once it was seen."""
    podless_since: datetime | None = None
    """Time since which the Job has had no pod."""
    rows: int | None = None
    """Number of rows written to the checkpoint table."""
    warnings: int | None = None
    """Number of rows with a warning."""
    message: str = ""
    """Exit message of the migration."""
    retry: str | None = None
    """Value of the annotation sluice.dev/retry that this try was started for."""
    finished_at: datetime | None = None
    """Time at which the migration ended."""
    next_at: datetime | None = None
    """Time of the next try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStatus(CamelCase):
    """An executor that finishes its tasks before it stops."""

    pod: str
    """Name of its pod."""
    since: datetime | None = None
    """Time since which it has been stopping."""
    deadline: datetime | None = None
    """Latest time at which it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatus(CamelCase):
    """Figures of the driver's last report. Times are those at which the operator saw something first."""

    number: int = 0
    """Number of the report."""
    open_shards: int = 0
    """Number of shards that can still get records."""
    ended_shards: int = 0
    """Number of shards that were read to their end."""
    held_shards: int = 0
    """Number of shards that this driver has taken over. It must hold all of them to be ready."""
    batch: int | None = None
    """Number of the last committed batch. Absent while a driver starts."""
    open_batch: int | None = None
    """Number of the batch that is being processed."""
    batch_at: datetime | None = None
    """Time at which the operator first saw this batch."""
    millis_behind_latest: int | None = None
    """Milliseconds behind the stream's tip at the last commit. Before a driver's first commit, the time for which the stream was not read."""
    lag: str | None = None
    """How far the consumer is behind, in a readable form such as 2m13s."""
    records_per_second: float | None = None
    """Records committed per second, recently."""
    records: int | None = None
    """Number of records that this driver has committed."""
    dead_letters: int | None = None
    """Number of records that were ever left out, over all drivers."""
    reported_at: datetime
    """Time at which the operator first saw this report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartStatus(CamelCase):
    """Ends of drivers since the last stable run; only failures are a budget."""

    count: int = 0
    """Number of failures since the last stable run. The pause before the next driver grows with it."""
    interruptions: int = 0
    """Number of evictions and held leases since the last stable run. They do not make the pause longer."""
    reason: str | None = None
    """Reason of the last end."""
    message: str | None = None
    """Message of the last end."""
    refused: str | None = None
    """Hash of a spec that a driver refused, until a driver works."""
    next_at: datetime | None = None
    """Time at which the next driver is started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition(CamelCase):
    """As in metav1.Condition."""

    type: str
    """Ready, Reconciling, Stalled, SpecValid, Migrated, DriverHealthy and others (docs/reference/status.md)."""
    status: str
    """True, False or Unknown."""
    reason: str
    """Reason in one word."""
    message: str
    """Message: what is the case, and what to do."""
    last_transition_time: datetime
    """Time of the last change of the status."""
    observed_generation: int
    """Generation of the spec that this condition is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(CamelCase):
    """The operator's write-ahead log: an action is recorded here before it is done."""

    observed_generation: int = 0
    """Generation of the spec that the operator has read."""
    phase: Phase = Phase.PENDING
    """Summary in one word."""
    conditions: tuple[Condition, ...] = ()
    """Conditions, each with a reason and a message that says what to do."""
    replicas: int = 0
    """Number of executors that exist and are not stopping."""
    selector: str = ""
    """Label selector of the executors' pods, for autoscalers."""
    driver: DriverStatus = field(default_factory=DriverStatus)
    """The current driver, or the last one."""
    migration: MigrationStatus | None = None
    """The migration from another consumer's table."""
    draining: tuple[DrainStatus, ...] = ()
    """Executors that finish their tasks before they stop."""
    stream: StreamStatus | None = None
    """Figures of the driver's last report."""
    restarts: RestartStatus = field(default_factory=RestartStatus)
    """Failed drivers, and the time of the next start."""
    progressing_since: datetime | None = None
    """Time at which the current change began. progressDeadlineSeconds counts from it."""
    last_good_spec: dict[str, Any] | None = None
    """The last valid spec. It stays in force while a new one is invalid."""

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, or None where it is absent."""
        return next((item for item in self.conditions if item.type == kind), None)
