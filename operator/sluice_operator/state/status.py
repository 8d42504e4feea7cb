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


class PositionState(StrEnum):
    """Where a move of positions is. After REFUSED and COMPLETE the driver starts; the others are tried again."""

    RUNNING = "Running"
    HELD = "Held"
    LOST = "Lost"
    FAILING = "Failing"
    STOPPED = "Stopped"
    REFUSED = "Refused"
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
    """Time at which its pod started, or at which it followed as a standby."""
    generation: int | None = None
    """Newest generation of the lease that a driver has reported. If it is set, the checkpoint table exists."""
    exit: Exit | None = None
    """How the last driver ended."""
    host: str | None = None
    """Name of the pool's pod that the driver runs in, or the last one ran in. Absent for a driver with a pod of its own."""
    leaving: Leaving | None = None
    """The previous driver, while it finishes its work."""


class StandbyState(StrEnum):
    """Where a standby is. After GIVEN_UP the rollout is made as Recreate; it stays as a memory. Only one for failover is READY or SILENT for long."""

    STARTING = "Starting"
    READY = "Ready"
    SILENT = "Silent"
    BACKING_OFF = "BackingOff"
    GIVEN_UP = "GivenUp"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyStatus(CamelCase):
    """The driver beside the present one, which follows it (spec.rollout.strategy Standby)."""

    attempt: int
    """Number of the driver."""
    pod: str
    """Name of its pod."""
    uid: str | None = None
    """Uid of its pod, once the pod was seen."""
    spec_hash: str
    """Hash of the fields of the spec that it runs."""
    restart: str | None = None
    """Value of the annotation sluice.dev/restart that it was started for."""
    state: StandbyState = StandbyState.STARTING
    """State of this standby: Starting, Ready, Silent, BackingOff or GivenUp."""
    reason: str = ""
    """Reason for which it ended or was given up."""
    message: str = ""
    """Its exit message, or what it lacked."""
    since: datetime
    """Time at which it was named, became ready or silent. spec.rollout.readySeconds counts from it."""
    tries: int = 1
    """Number of standbys so far: of this rollout, or since one was ready for spec.restart.resetAfterSeconds."""
    next_at: datetime | None = None
    """Time at which the next standby is started."""


class TrialState(StrEnum):
    """Where a trial is. FORWARD: there is no way back from this version."""

    RUNNING = "Running"
    ROLLED_BACK = "RolledBack"
    FORWARD = "Forward"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStatus(CamelCase):
    """The version of the spec that is not proven, and what became of it (spec.rollout.trial)."""

    hash: str
    """Hash of the fields of the spec that the version consists of."""
    state: TrialState
    """State of the trial: Running, RolledBack or Forward."""
    reason: str = ""
    """Why it was rolled back, or why there is no way back."""
    message: str = ""
    """The same in words."""
    since: datetime
    """Time at which this state began."""
    restart: str | None = None
    """Value of the annotation sluice.dev/restart at that time. A new value starts another trial."""
    after: int = 0
    """Number of the last driver before this state. Only later ones are judged."""
    base: int | None = None
    """Batch after which the driver that is judged commits its own."""
    worked: int = 0
    """Seconds of work that were counted."""
    working_since: datetime | None = None
    """Time since which more are counted. Absent while nothing is counted."""
    led_from: int | None = None
    """Seconds of work that were counted when its driver had every shard. Absent if none of its drivers ever had."""
    speed: float | None = None
    """Records per second of work of the proven version before."""
    executors: int | None = None
    """Number of executors at that speed."""
    passed: bool = False
    """Whether the proven version has got further since the rollback than this one did. Then this one was to blame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenStatus(CamelCase):
    """The last version of the spec that passed a trial. A rollback returns to it."""

    hash: str
    """Hash of the fields of the spec that the version consists of. status.provenSpec has the fields."""
    since: datetime
    """Time at which it passed."""
    position: str | None = None
    """Id of the last move of positions that it works with."""


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
class Moved(CamelCase):
    """What the Job says that it moved."""

    to: str | None = None
    """New position: trimHorizon, latest, the time in UTC, or the batch."""
    shards: int | None = None
    """Number of shards in the plan."""
    records_again: int | None = None
    """Number of records that come again. Absent if the table does not say."""
    records_passed_over: int | None = None
    """Number of records that are never delivered. Absent if the table does not say."""
    batch: int | None = None
    """Last committed batch at the move. What comes again has higher numbers."""
    digest: str | None = None
    """Hash of the plan, shard by shard."""
    warnings: int | None = None
    """Number of warnings. The Job's log has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionStatus(CamelCase):
    """The memory of `spec.position`: no driver is made while it is under way, and no id is carried out twice."""

    id: str
    """Name of the move."""
    hash: str
    """Hash of what is asked for. It is part of the Job's name."""
    spec_hash: str
    """Hash of everything that the Job runs. If it changes, a Job that has not ended is replaced."""
    job: str
    """Name of the Job of this try."""
    tries: int
    """Number of tries so far."""
    state: PositionState = PositionState.RUNNING
    """State of this try. Complete and Refused are final."""
    uid: str | None = None
    """Uid of the Job, once it was seen."""
    podless_since: datetime | None = None
    """Time since which the Job has had no pod."""
    failures: int = 0
    """Number of tries that failed without a refusal."""
    message: str = ""
    """Exit message of the Job."""
    moved: Moved | None = None
    """What was moved."""
    retry: str | None = None
    """Value of the annotation sluice.dev/retry that this try was started for."""
    since: datetime | None = None
    """Time since which a driver waits for this move, or since the lease was last held by another program. Absent while no driver is wanted."""
    finished_at: datetime | None = None
    """Time at which the try ended."""
    next_at: datetime | None = None
    """Time of the next try."""
    earlier: tuple[str, ...] = ()
    """Ids that were carried out before, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStatus(CamelCase):
    """An executor that finishes its tasks before it stops."""

    pod: str
    """Name of its pod."""
    since: datetime | None = None
    """Time at which it began to stop."""
    deadline: datetime | None = None
    """Latest time at which it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionStatus(CamelCase):
    """A version of the spec, as the checkpoint table names it."""

    first_batch: int
    """First batch that it commits. If the next version has the same first batch, it committed none."""
    since: datetime | None = None
    """Time at which its driver began it, by that driver's clock."""
    hash: str | None = None
    """Hash of the fields of the spec that its driver runs."""
    image: str | None = None
    """Image of its driver."""
    reset: str | None = None
    """Id of the last move of positions before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatus(CamelCase):
    """Figures of the driver's last report. Times are those at which the operator saw something first."""

    number: int = 0
    """Number of the driver's report; each new report has a higher one."""
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
    busy: float | None = None
    """Part of the last minute in which a batch was worked on, 0 to 1. At 1 batches follow each other."""
    active_shards: int | None = None
    """Number of shards that gave records in that time."""
    reported_at: datetime
    """Time at which the operator first saw this report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSample(CamelCase):
    """Figures of a report, with which those of a later report are compared. A new driver, or another number of executors, begins with a new one."""

    at: datetime
    """Time at which the operator took it."""
    attempt: int
    """Number of the driver."""
    executors: int
    """Number of executors that were ready."""
    batch: int | None = None
    """Number of the last committed batch."""
    records: int | None = None
    """Number of records that the driver had committed."""
    millis_behind_latest: int | None = None
    """Milliseconds behind the stream's tip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTrial(CamelCase):
    """Executors that were added, until it is known whether they helped."""

    executors: int
    """Number of executors before."""
    seconds_per_record: float
    """Time that a record took before."""
    steps: int = 1
    """Number of times that executors were added since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscaleStatus(CamelCase):
    """The memory of `spec.autoscale`: a number is written here before the driver gets it, and an operator that starts continues from here."""

    replicas: int
    """Number of executors that the operator has chosen."""
    reason: str = "Measuring"
    """Reason of the last decision in one word, such as Steady, ScaledUp, HotShard, NoGain or ReportStale."""
    message: str = ""
    """Figures on which the decision depends."""
    changed_at: datetime | None = None
    """Time of the last change of replicas."""
    quiet_since: datetime | None = None
    """Time since which fewer executors would be enough."""
    sample: ScaleSample | None = None
    """Figures of the last decision."""
    trial: ScaleTrial | None = None
    """Executors that were added, until it is known whether they helped."""
    ceiling: int | None = None
    """Number of executors beyond which more did not help."""
    ceiling_until: datetime | None = None
    """Time at which more executors are tried again."""


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
class MemberDeaths(CamelCase):
    """A member that the last death of a pool's process named."""

    uid: str
    """Uid of the KinesisConsumer."""
    name: str
    """Name of the KinesisConsumer."""
    deaths: int
    """Number of deaths in a row that named it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOut(CamelCase):
    """A member that was put out of its pool. It returns once one of the last two fields differs from its resource."""

    uid: str
    """Uid of the KinesisConsumer."""
    name: str
    """Name of the KinesisConsumer."""
    deaths: int
    """Number of deaths in a row that named it."""
    since: datetime
    """Time of the last of these deaths."""
    spec_hash: str
    """Hash of the fields of its spec that a driver runs, at that time."""
    restart: str | None = None
    """Value of its annotation sluice.dev/restart at that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeathsStatus(CamelCase):
    """The memory of a pool whose process ended without being asked to."""

    pod: str
    """Uid of the last pod whose death was counted."""
    named: tuple[MemberDeaths, ...] = ()
    """Members that its death named."""
    out: tuple[PutOut, ...] = ()
    """Members that were put out of the pool. Each has a driver of its own."""


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
    """What is the case, and what to do next."""
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
    """Label selector of the executors' pods, for autoscalers. Executors of a standby are left out."""
    driver: DriverStatus = field(default_factory=DriverStatus)
    """The current driver, or the last one."""
    standby: StandbyStatus | None = None
    """The driver that starts beside the current one, or the last one that was given up."""
    attempts: int | None = None
    """Highest number of a standby so far. The next driver gets a higher one, even if no standby is left."""
    trial: TrialStatus | None = None
    """The version on trial, or the one that was rolled back."""
    proven: ProvenStatus | None = None
    """The version to which a rollback returns."""
    migration: MigrationStatus | None = None
    """The migration from another consumer's table."""
    position: PositionStatus | None = None
    """The last move of positions (spec.position)."""
    autoscale: AutoscaleStatus | None = None
    """The number of executors that spec.autoscale has come to, and why."""
    draining: tuple[DrainStatus, ...] = ()
    """Executors that finish their tasks before they stop."""
    stream: StreamStatus | None = None
    """Figures of the driver's last report."""
    versions: tuple[VersionStatus, ...] = ()
    """The last versions of the spec that committed batches, at most 10, the newest first (docs/how-to/undo-a-deploy.md)."""
    restarts: RestartStatus = field(default_factory=RestartStatus)
    """Failed drivers, and the time of the next start."""
    progressing_since: datetime | None = None
    """Time at which the current change began. progressDeadlineSeconds counts from it."""
    last_good_spec: dict[str, Any] | None = None
    """The last valid spec. It stays in force while a new one is invalid."""
    proven_spec: dict[str, Any] | None = None
    """Fields of the spec that status.proven consists of."""
    members: int | None = None
    """Number of KinesisConsumers that name this pool."""
    ready_members: int | None = None
    """Number of these that are ready."""
    deaths: DeathsStatus | None = None
    """Members that its process named when it ended without being asked to."""
    start: str | None = None
    """Start position that the consumer was given. Present only while spec.start names another one, which has no effect."""

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, or None where it is absent."""
        return next((item for item in self.conditions if item.type == kind), None)
