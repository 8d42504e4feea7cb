"""What the operator observes of one resource, as frozen values: the resource itself, pods, Jobs and the driver's report.

Everything that a plan reads is a value of `state`, so a plan can be printed, compared and written as a literal in a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.state.status import CamelCase, DrainStatus, Exit, Moved, VersionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What the operator reads of a KinesisConsumer, or of a KinesisConsumerPool, besides spec and status."""

    namespace: str
    name: str
    uid: str
    version: str
    generation: int
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    paused: bool = False
    retry: str | None = None
    restart: str | None = None
    force: str | None = None
    accept_loss: str | None = None
    kind: str = CONSUMER_KIND

    def driver_name(self, attempt: int) -> str:
        """The name of a driver's pod: `orders-driver-3`; of a pool `small-pool-3`."""
        return f"{self.name}-{'driver' if self.kind == CONSUMER_KIND else 'pool'}-{attempt}"

    def app(self, attempt: int) -> str:
        """Spark's name for a driver, with which the names of its executors begin. A pool has no name that a consumer may have."""
        return f"{self.name}-{'' if self.kind == CONSUMER_KIND else 'pool'}{attempt}"


FIGURES = (
    "batch", "open_batch", "millis_behind_latest", "records_per_second", "records", "dead_letters",
    "busy", "active_shards", "farthest_shard", "millis_behind_others",
)  # fmt: skip
"""Fields of a report that move with every batch, and on which no rule depends before it looks by itself."""


FULL = "exceeded quota"  # the API server's words for an amount; a quota that asks for a size says "must specify"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that keeps a pod or an API call from succeeding, in Kubernetes' words."""

    reason: str
    message: str

    @property
    def no_room(self) -> bool:
        """Whether another pod would have to go first: no node has room for it, or a quota is used up."""
        return self.reason == "Unschedulable" or FULL in self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(CamelCase):
    """The driver's report (docs/interfaces.md). Fields that a driver leaves out have these defaults."""

    number: int
    phase: str
    deadline: datetime | None = None
    generation: int | None = None
    batch: int | None = None
    open_batch: int | None = None
    open_shards: int = 0
    ended_shards: int = 0
    held_shards: int = 0
    executors: int = 0
    draining: tuple[DrainStatus, ...] = ()
    millis_behind_latest: int | None = None
    records_per_second: float | None = None
    records: int | None = None
    dead_letters: int | None = None
    busy: float | None = None
    active_shards: int | None = None
    farthest_shard: str | None = None
    millis_behind_others: int | None = None
    warnings: tuple[str, ...] = ()
    versions: tuple[VersionStatus, ...] = ()

    @property
    def holds_all(self) -> bool:
        """Every shard row carries this epoch's generation, and the loop is running."""
        return self.phase in {"Running", "Idle"} and self.held_shards == self.open_shards + self.ended_shards

    @property
    def stands_by(self) -> bool:
        """Spark and the pipeline are ready, and another driver has the lease."""
        return self.phase == "StandingBy"

    @property
    def without_figures(self) -> Report:
        """What a plan may depend on."""
        unknown: dict[str, Any] = dict.fromkeys(FIGURES)
        return replace(self, number=0, **unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A driver, executor or migration pod. `owner` is the uid of its controller.

    `gone_by` is the end of its grace period; in the cache by this process's clock, and `told_gone_by` is the same by the API server's.
    `forced`: its deletion waits for no node any more. `finalizers` keep it, whoever set them. `rows` and `warnings` are
    a migration's result, and `moved` is that of a move of positions.
    `trouble` keeps its own container from starting; `beside` is that of another container while its own one runs, such as a sidecar that crashes.
    `seen_at`: when this process saw first that it had started, by its own clock; of drivers' pods alone.
    `reported_at`: when the number of its report was seen first, and `batch_at` when its open batch was.
    `table_hash`: what decides which checkpoint table it finds under its name.
    `unlisted`: a label of ours is gone, so no watch shows it.
    `working`: of a pool's pod that ended, the members that its exit message names. It is None without a message, or if it does not name all.
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
    told_gone_by: datetime | None = None
    forced: bool = False
    finalizers: tuple[str, ...] = ()
    started_at: datetime | None = None
    seen_at: datetime | None = None
    spec_hash: str | None = None
    table_hash: str | None = None
    target: str | None = None
    exit: Exit | None = None
    trouble: Trouble | None = None
    beside: Trouble | None = None
    report: Report | None = None
    reported_at: datetime | None = None
    batch_at: datetime | None = None
    unlisted: bool = False
    rows: int | None = None
    warnings: int | None = None
    moved: Moved | None = None
    working: tuple[str, ...] | None = None

    @property
    def deleting(self) -> bool:
        """Its deletion was asked for. It may still run for its whole grace period."""
        return self.gone_by is not None

    @property
    def held(self) -> bool:
        """Its object stays after its containers have ended, until somebody takes the finalizers off."""
        return bool(self.finalizers)

    @property
    def finished(self) -> bool:
        """Its containers have ended and, with restartPolicy Never, will not come back."""
        return self.phase in {"Succeeded", "Failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A Job of a migration, or of a move of positions: `state` is Active, Complete or Failed.

    `active`: Kubernetes counts a pod of it that has not ended. `finalizers` keep it.
    """

    name: str
    uid: str
    owner: str | None = None
    owner_kind: str = ""
    owner_name: str = ""
    spec_hash: str | None = None
    state: str = "Active"
    active: bool = False
    message: str = ""
    deleting: bool = False
    finalizers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything of one resource that exists, and what of it cannot be seen any more.

    `refusal` is what the API server answered to the last action, not to be repeated before `refused_until`. `standby_refused`: it was about a
    standby only, so nothing else waits.
    `failing`: why reconciles of the resource have failed for a minute or longer.
    `exits` are those that were ever seen of drivers, by uid: their pods may be gone by now.
    `doomed`: the whole namespace is being deleted, and the rest was not looked at.
    """

    drivers: tuple[Pod, ...] = ()
    executors: tuple[Pod, ...] = ()
    migrators: tuple[Pod, ...] = ()
    jobs: tuple[Job, ...] = ()
    refusal: Trouble | None = None
    refused_until: datetime | None = None
    standby_refused: bool = False
    failing: str | None = None
    exits: Mapping[str, Exit] = field(default_factory=dict)
    doomed: bool = False
