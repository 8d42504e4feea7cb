"""What the operator sees and keeps, as frozen values.

Everything that `plan` reads is defined here and all it returns in `action`, so that a plan can be printed, compared and written as a
literal in a test. No I/O, no clock and no third-party package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

GROUP = "sluice.dev"
FINALIZER = f"{GROUP}/operator"


def camel(name: str) -> str:
    """`last_good_spec` → `lastGoodSpec`: names on the wire are camelCase."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def counted(number: int, thing: str) -> str:
    """`1 executor`, `3 executors`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


class Wire:
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
class Exit(Wire):
    """How a driver or a migration ended: exit code (None: never seen), one word, and its own words."""

    code: int | None = None
    reason: str
    message: str = ""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving(Wire):
    """The driver before: the one that the status names is made when this one has ended its work. `why` it was asked to."""

    attempt: int
    pod: str
    uid: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver(Wire):
    """The present attempt (`pod` set) or the last one (`pod` None). `uid` is None until the pod was seen, `leaving` from then on.

    `generation` is the newest that any attempt has reported: with it there is a checkpoint table, which no driver may make again.
    """

    attempt: int = 0
    pod: str | None = None
    uid: str | None = None
    spec_hash: str | None = None
    forced: bool = False
    stopping: str | None = None
    started_at: datetime | None = None
    generation: int | None = None
    exit: Exit | None = None
    leaving: Leaving | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration(Wire):
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
class Drain(Wire):
    """An executor that ends its tasks before it leaves."""

    pod: str
    since: datetime | None = None
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(Wire):
    """Figures of the driver's last report; `reported_at` is the operator's time of seeing its `number` first.

    `open_batch` is the batch that is being processed, `batch_at` the operator's time of seeing it first.
    """

    number: int = 0
    open_shards: int = 0
    ended_shards: int = 0
    held_shards: int = 0
    batch: int = 0
    open_batch: int | None = None
    batch_at: datetime | None = None
    millis_behind_latest: int | None = None
    records_per_second: float | None = None
    records: int | None = None
    reported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts(Wire):
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
class Condition(Wire):
    """As in metav1.Condition."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime
    observed_generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(Wire):
    """`.status`, the operator's write-ahead log: what is about to be done stands here first.

    `progressing_since` is when the present way to what the spec asks for began; spec.progressDeadlineSeconds counts from it.
    """

    observed_generation: int = 0
    phase: Phase = Phase.PENDING
    conditions: tuple[Condition, ...] = ()
    replicas: int = 0
    selector: str = ""
    driver: Driver = field(default_factory=Driver)
    migration: Migration | None = None
    draining: tuple[Drain, ...] = ()
    stream: Stream | None = None
    restarts: Restarts = field(default_factory=Restarts)
    progressing_since: datetime | None = None
    last_good_spec: dict[str, Any] | None = None

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, or None where it is absent."""
        return next((item for item in self.conditions if item.type == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What the operator reads of a KinesisConsumer besides spec and status."""

    namespace: str
    name: str
    uid: str
    version: str
    generation: int
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    paused: bool = False
    retry: str | None = None
    force: str | None = None
    accept_loss: str | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that keeps a pod or an API call from succeeding, in Kubernetes' words."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Wire):
    """The driver's report (docs/interfaces.md). Fields that a driver leaves out have these defaults."""

    number: int
    phase: str
    deadline: str | None = None
    generation: int | None = None
    batch: int = 0
    open_batch: int | None = None
    open_shards: int = 0
    ended_shards: int = 0
    held_shards: int = 0
    executors: int = 0
    draining: tuple[Drain, ...] = ()
    millis_behind_latest: int | None = None
    records_per_second: float | None = None
    records: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def holds_all(self) -> bool:
        """Every shard row carries this life's generation, and the loop is running."""
        return self.phase in {"Running", "Idle"} and self.held_shards == self.open_shards + self.ended_shards

    @property
    def without_figures(self) -> Report:
        """What a plan may depend on."""
        return replace(self, number=0, batch=0, open_batch=None, millis_behind_latest=None, records_per_second=None, records=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A driver, executor or migration pod. `owner` is the uid of its controller, `gone_by` the end of its grace period.

    `forced`: its deletion waits for no node any more. `rows` and `warnings` are a migration's result.
    """

    name: str
    uid: str
    role: str
    attempt: int = 0
    owner: str | None = None
    owner_kind: str = ""
    owner_name: str = ""
    phase: str = "Pending"
    gone_by: datetime | None = None
    forced: bool = False
    started_at: datetime | None = None
    spec_hash: str | None = None
    target: str | None = None
    exit: Exit | None = None
    trouble: Trouble | None = None
    report: Report | None = None
    reported_at: datetime | None = None
    rows: int | None = None
    warnings: int | None = None

    @property
    def deleting(self) -> bool:
        """Somebody asked for its deletion; it may still run for its whole grace period."""
        return self.gone_by is not None

    @property
    def finished(self) -> bool:
        """Its containers have ended and, with restartPolicy Never, will not come back."""
        return self.phase in {"Succeeded", "Failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A migration Job: `state` is Active, Complete or Failed."""

    name: str
    uid: str
    owner: str | None = None
    owner_kind: str = ""
    owner_name: str = ""
    spec_hash: str | None = None
    state: str = "Active"
    message: str = ""
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything of one resource that exists, and what of it cannot be seen any more.

    `refusal` is what the API server answered to the last action, not to be repeated before `refused_until`.
    `exits` are those that were ever seen of drivers, by uid: their pods may be gone by now.
    `doomed`: the whole namespace is being deleted, and the rest was not looked at.
    """

    drivers: tuple[Pod, ...] = ()
    executors: tuple[Pod, ...] = ()
    migrators: tuple[Pod, ...] = ()
    jobs: tuple[Job, ...] = ()
    refusal: Trouble | None = None
    refused_until: datetime | None = None
    exits: Mapping[str, Exit] = field(default_factory=dict)
    doomed: bool = False
