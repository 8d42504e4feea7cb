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
    """Exit code; absent if nobody saw it."""
    reason: str
    """One word, such as Failed, OOMKilled or LeaseLost."""
    message: str = ""
    """Its last words."""
    at: datetime
    """When it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving(CamelCase):
    """The driver before: the one that the status names is made when this one has ended its work. `why` it was asked to."""

    attempt: int
    """Its number."""
    pod: str
    """Name of its pod."""
    uid: str
    """Uid of its pod."""
    why: str
    """Why it was asked to leave, such as SpecChanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStatus(CamelCase):
    """The present driver (`pod` set) or the last one (`pod` None).

    `uid` is None until the pod was seen, `leaving` from then on. With a `generation` no driver may make the checkpoint table again.
    """

    attempt: int = 0
    """Number of the present driver, or of the last one. Each driver has one more than the one before."""
    pod: str | None = None
    """Name of its pod; absent if it has ended."""
    uid: str | None = None
    """Uid of its pod, once the pod was seen."""
    spec_hash: str | None = None
    """Hash of the fields of the spec that it runs."""
    restart: str | None = None
    """The value of the annotation sluice.dev/restart that it honours."""
    forced: bool = False
    """Whether the driver before it was given up by the annotation sluice.dev/force."""
    stopping: str | None = None
    """Why it was asked to stop."""
    started_at: datetime | None = None
    """When its pod was made."""
    generation: int | None = None
    """The newest generation of the lease that a driver has reported. With it there is a checkpoint table."""
    exit: Exit | None = None
    """How the last driver ended."""
    leaving: Leaving | None = None
    """The driver before, while it ends its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStatus(CamelCase):
    """The migration gate's memory: no driver is made before its state is Complete."""

    hash: str
    """Names the Job: a hash of source, format and target."""
    spec_hash: str
    """Hash of all that the Job runs. A change of it lets a failed migration try again."""
    job: str
    """Name of the Job of this try."""
    tries: int
    """Tries so far."""
    state: MigrationState = MigrationState.RUNNING
    """Where this try is; Complete is final."""
    uid: str | None = None
    """Uid of the Job, once it was seen."""
    podless_since: datetime | None = None
    """Since when the Job has had no pod."""
    rows: int | None = None
    """Rows that were written to the checkpoint table."""
    warnings: int | None = None
    """Rows of which the migration has said something."""
    message: str = ""
    """The migration's last words."""
    retry: str | None = None
    """The value of the annotation sluice.dev/retry that it honours."""
    finished_at: datetime | None = None
    """When it ended."""
    next_at: datetime | None = None
    """When it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStatus(CamelCase):
    """An executor that ends its tasks before it leaves."""

    pod: str
    """Name of its pod."""
    since: datetime | None = None
    """Since when it has been leaving."""
    deadline: datetime | None = None
    """When it is ended at the latest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatus(CamelCase):
    """Figures of the driver's last report. Times are those at which the operator saw something first."""

    number: int = 0
    """Number of the report."""
    open_shards: int = 0
    """Shards that still get records."""
    ended_shards: int = 0
    """Shards that were read to their end."""
    held_shards: int = 0
    """Shards that this driver has taken over; it has to have them all to be ready."""
    batch: int | None = None
    """The last batch that was committed; a driver that starts does not know it yet."""
    open_batch: int | None = None
    """The batch that is being processed."""
    batch_at: datetime | None = None
    """When the operator saw this batch first."""
    millis_behind_latest: int | None = None
    """How far the consumer is behind the stream's end, in milliseconds: at the last commit; before a driver's first, for how long it was not read."""
    lag: str | None = None
    """How far the consumer is behind, for people, such as 2m13s."""
    records_per_second: float | None = None
    """Records that were committed a second, lately."""
    records: int | None = None
    """Records that this driver has committed."""
    dead_letters: int | None = None
    """Records that were ever left out, over all drivers."""
    reported_at: datetime
    """When the operator saw this report first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartStatus(CamelCase):
    """Ends of drivers since the last stable run; only failures are a budget."""

    count: int = 0
    """Failures since the last stable run; the pause before the next driver grows with it."""
    interruptions: int = 0
    """Evictions and held leases since the last stable run. They do not make the pause longer."""
    reason: str | None = None
    """Reason of the last end."""
    message: str | None = None
    """Message of the last end."""
    refused: str | None = None
    """Hash of a spec that a driver refused, until one works."""
    next_at: datetime | None = None
    """When the next driver is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition(CamelCase):
    """As in metav1.Condition."""

    type: str
    """Ready, Reconciling, Stalled, SpecValid, Migrated, DriverHealthy and others (docs/reference/status.md)."""
    status: str
    """True, False or Unknown."""
    reason: str
    """One word."""
    message: str
    """What is the case, and what to do."""
    last_transition_time: datetime
    """When the status changed last."""
    observed_generation: int
    """The generation of the spec that this is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(CamelCase):
    """The operator's write-ahead log: an action is recorded here before it is done."""

    observed_generation: int = 0
    """The generation of the spec that the operator has taken in."""
    phase: Phase = Phase.PENDING
    """One word for people."""
    conditions: tuple[Condition, ...] = ()
    """What holds, with reasons that say what to do."""
    replicas: int = 0
    """Executors that are there and are not on their way out."""
    selector: str = ""
    """Finds the executors' pods; autoscalers read it."""
    driver: DriverStatus = field(default_factory=DriverStatus)
    """The present driver, or the last one."""
    migration: MigrationStatus | None = None
    """The migration from another consumer's table."""
    draining: tuple[DrainStatus, ...] = ()
    """Executors that end their tasks before they leave."""
    stream: StreamStatus | None = None
    """Figures of the driver's last report."""
    restarts: RestartStatus = field(default_factory=RestartStatus)
    """Failed drivers, and when the next one is made."""
    progressing_since: datetime | None = None
    """When the present way to what the spec asks for began. progressDeadlineSeconds counts from it."""
    last_good_spec: dict[str, Any] | None = None
    """The last spec that could be carried out; it stays in force while a new one cannot."""

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, or None where it is absent."""
        return next((item for item in self.conditions if item.type == kind), None)
