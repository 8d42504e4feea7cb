"""One KinesisConsumer as a person sees it (docs/reference/status.md, "Status"). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sluice_kubectl.views.documents import shown
from sluice_kubectl.views.part import ObjectPart
from sluice_operator.names import GROUP, LETTER_PLACES, default_table, region_of

Json = dict[str, Any]
AT_REST = {"Draining": "False", "Migrated": "True", "Ready": "True", "SpecValid": "True", "DriverHealthy": "True", "StandbyReady": "True"}
"""Conditions that have nothing to say in this status. Any other condition speaks when it is True."""
URGENT = {"RetentionNear", "SourceMoved"}
"""Conditions of a consumer that may be Ready, for which docs/runbooks.md calls somebody, and which end when their cause ends."""


@dataclass(frozen=True, slots=True)
class ConditionView:
    """A condition; `speaks` if a person should read it."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None
    speaks: bool


@dataclass(frozen=True, slots=True)
class ReadinessView:
    """All conditions of a resource; and what Ready and Stalled say, where no operator has written them yet, too."""

    conditions: tuple[ConditionView, ...]
    ready: str
    reason: str
    message: str
    stalled: bool


@dataclass(frozen=True, slots=True)
class DriverView:
    """The present driver, or the last one. `leaving` is the pod of the previous driver, while it ends its work.

    `host` is the pod of a pool that it runs in, or the last one ran in; `pod` is the name of its seat then.
    """

    attempt: int
    pod: str | None
    uid: str | None
    started: datetime | None
    stopping: str | None
    host: str | None
    leaving: str | None
    leaving_uid: str | None
    exit_reason: str | None
    exit_message: str | None
    exit_code: int | None
    exit_at: datetime | None


@dataclass(frozen=True, slots=True)
class PositionView:
    """The last move of positions, and what became of it. `wanted`: it is the one that `spec.position` asks for."""

    id: str
    wanted: bool
    state: str
    message: str
    at: datetime | None
    next_try: datetime | None
    to: str | None
    again: int | None
    passed_over: int | None
    digest: str | None


@dataclass(frozen=True, slots=True)
class AutoscaleView:
    """What `spec.autoscale` has come to, and why. `at`: the last change."""

    replicas: int
    least: int
    most: int | None
    reason: str
    message: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class StandbyView:
    """The driver that starts beside the present one, or the last one that was given up."""

    pod: str
    uid: str | None
    state: str
    message: str
    since: datetime | None
    next_try: datetime | None


@dataclass(frozen=True, slots=True)
class TrialView:
    """The version that is not proven, and what became of it. `proven` is the version to which a rollback returns."""

    hash: str | None
    state: str
    reason: str
    message: str
    since: datetime | None
    base: int | None
    wanted: int
    proven: str | None


@dataclass(frozen=True, slots=True)
class FiguresView:
    """Figures of the driver's last report; None where it has not said. `lag_millis` is as old as the report."""

    lag_millis: int | None
    records_per_second: float | None
    busy: float | None
    records: int | None
    dead_letters: int | None
    batch: int | None
    open_batch: int | None
    batch_at: datetime | None
    open_shards: int | None
    ended_shards: int | None
    held_shards: int | None
    reported: datetime | None


@dataclass(frozen=True, slots=True)
class VersionView:
    """A version of the spec: the first batch that it commits. None where the table does not say."""

    first: int | None
    since: datetime | None
    hash: str | None
    image: str | None
    reset: str | None


@dataclass(frozen=True, slots=True)
class ConsumerView:
    """What a KinesisConsumer says of itself. `behind`: its status is of an earlier spec. `letters` is where dead letters go.

    `unreadable` are the first five fields that are there and cannot be read.
    """

    namespace: str
    name: str
    stream: str
    region: str
    table: str
    pool: str | None
    phase: str
    ready: str
    reason: str
    message: str
    stalled: bool
    paused: bool
    suspended: bool
    deleting: bool
    behind: bool
    executors: int
    desired: int
    created: datetime | None
    failures: int
    next_start: datetime | None
    migration: str | None
    next_migration: datetime | None
    position: PositionView | None
    autoscale: AutoscaleView | None
    standby: StandbyView | None
    trial: TrialView | None
    letters: str | None
    figures: FiguresView
    versions: tuple[VersionView, ...]
    driver: DriverView
    conditions: tuple[ConditionView, ...]
    unreadable: tuple[str, ...]

    @property
    def needs_attention(self) -> bool:
        """Whether it is Stalled, or its records are in danger."""
        return self.stalled or any(condition.speaks and condition.type in URGENT for condition in self.conditions)


def region(stream: ObjectPart) -> str:
    """Of spec.stream, whether it has a region or an ARN."""
    return stream.text("region") or region_of(stream.text("arn") or "")


def consumer(body: Json) -> ConsumerView:
    """The resource as the API server has it, whatever its form; a status that is not there yet is Pending. Each text is one printable line."""
    return shown(_consumer(body))


def _consumer(body: Json) -> ConsumerView:
    whole = ObjectPart.whole(body)
    meta, spec, status = whole.part("metadata"), whole.part("spec"), whole.part("status")
    readiness_view = readiness(status)
    restarts, migration, stream = status.part("restarts"), status.part("migration"), spec.part("stream")
    scale = _autoscale(status.part("autoscale"), spec.part("autoscale")) if status.has("autoscale") and spec.has("autoscale") else None
    desired = scale.replicas if scale else spec.count("replicas")
    namespace, name = meta.must("namespace"), meta.must("name")
    return ConsumerView(
        namespace=namespace,
        name=name,
        stream=stream.text("arn") or stream.must("name"),
        region=region(stream),
        table=spec.part("checkpoints").text("table") or default_table(namespace, name),
        pool=spec.text("pool"),
        phase=status.text("phase") or "Pending",
        ready=readiness_view.ready,
        reason=readiness_view.reason,
        message=readiness_view.message,
        stalled=readiness_view.stalled,
        paused=is_paused(body),
        suspended=spec.flag("suspend"),
        deleting=meta.has("deletionTimestamp"),
        behind=status.count("observedGeneration") != meta.count("generation"),
        executors=status.count("replicas") or 0,
        desired=1 if desired is None else desired,
        created=meta.time("creationTimestamp"),
        failures=restarts.count("count") or 0,
        next_start=restarts.time("nextAt"),
        migration=migration.text("state"),
        next_migration=migration.time("nextAt"),
        position=_position(status.part("position"), spec.part("position").text("id")) if status.has("position") else None,
        autoscale=scale,
        standby=_standby(status.part("standby")) if status.has("standby") else None,
        trial=_trial(status, spec) if spec.part("rollout").has("trial") else None,
        letters=_letters(spec.part("onError", "deadLetter")),
        figures=_figures(status.part("stream")),
        versions=tuple(map(_version, status.parts("versions"))),
        driver=_driver(status.part("driver")),
        conditions=readiness_view.conditions,
        unreadable=whole.noted(),
    )


def readiness(status: ObjectPart) -> ReadinessView:
    """Of a consumer or a pool."""
    conditions = tuple(map(_condition, status.parts("conditions")))
    by_type = {condition.type: condition for condition in conditions}
    ready, stalled = by_type.get("Ready"), by_type.get("Stalled")
    words = (ready.status, ready.reason, ready.message) if ready else ("Unknown", "NotSeenYet", "no operator has written a status")
    return ReadinessView(conditions, *words, stalled=stalled is not None and stalled.status == "True")


def is_paused(body: Json) -> bool:
    """Whether the annotation keeps the operator's hands off; any value but `false` does."""
    note = ObjectPart.whole(body).part("metadata", "annotations").value.get(f"{GROUP}/paused")
    return note is not None and note != "false"


def dynamodb_endpoint(body: Json) -> str | None:
    """Another DynamoDB than the region's, for the checkpoint table."""
    return ObjectPart.whole(body).part("spec", "stream").text("dynamodbEndpoint")


def by_need(consumers: Iterable[ConsumerView]) -> tuple[ConsumerView, ...]:
    """Those that need attention first, then those that are not ready, then by lag; else by name."""

    def rank(view: ConsumerView) -> tuple[bool, bool, int, str, str]:
        return not view.needs_attention, view.ready == "True", -(view.figures.lag_millis or 0), view.namespace, view.name

    return tuple(sorted(consumers, key=rank))


def _letters(place: ObjectPart) -> str | None:
    """Where dead letters go: `path s3a://…`, `sqs https://…`, `kinesis letters`."""
    return next((f"{kind} {text}" for kind in LETTER_PLACES if (text := place.text(kind))), None)


def _condition(item: ObjectPart) -> ConditionView:
    """As it is stored, and whether a person should read it."""
    type_, status = item.must("type"), item.must("status")
    speaks = status != AT_REST.get(type_, "False")
    return ConditionView(type_, status, item.text("reason") or "", item.text("message") or "", item.time("lastTransitionTime"), speaks)


def _figures(stream: ObjectPart) -> FiguresView:
    return FiguresView(
        lag_millis=stream.count("millisBehindLatest"),
        records_per_second=stream.number("recordsPerSecond"),
        busy=stream.number("busy"),
        records=stream.count("records"),
        dead_letters=stream.count("deadLetters"),
        batch=stream.count("batch"),
        open_batch=stream.count("openBatch"),
        batch_at=stream.time("batchAt"),
        open_shards=stream.count("openShards"),
        ended_shards=stream.count("endedShards"),
        held_shards=stream.count("heldShards"),
        reported=stream.time("reportedAt"),
    )


def _version(item: ObjectPart) -> VersionView:
    return VersionView(item.count("firstBatch"), item.time("since"), item.text("hash"), item.text("image"), item.text("reset"))


def _autoscale(chosen: ObjectPart, bounds: ObjectPart) -> AutoscaleView:
    return AutoscaleView(
        replicas=chosen.count("replicas") or 0,
        least=bounds.count("min") or 1,
        most=bounds.count("max"),
        reason=chosen.text("reason") or "",
        message=chosen.text("message") or "",
        at=chosen.time("changedAt"),
    )


def _position(position: ObjectPart, wanted: str | None) -> PositionView:
    moved = position.part("moved")
    return PositionView(
        id=position.must("id"),
        wanted=position.text("id") == wanted,
        state=position.text("state") or "",
        message=position.text("message") or "",
        at=position.time("finishedAt"),
        next_try=position.time("nextAt"),
        to=moved.text("to"),
        again=moved.count("recordsAgain"),
        passed_over=moved.count("recordsPassedOver"),
        digest=moved.text("digest"),
    )


def _standby(standby: ObjectPart) -> StandbyView:
    return StandbyView(
        pod=standby.text("pod") or "",
        uid=standby.text("uid"),
        state=standby.text("state") or "",
        message=standby.text("message") or "",
        since=standby.time("since"),
        next_try=standby.time("nextAt"),
    )


def _trial(status: ObjectPart, spec: ObjectPart) -> TrialView | None:
    trial, terms = status.part("trial"), spec.part("rollout", "trial")
    if not status.has("trial") and not status.has("proven"):
        return None
    return TrialView(
        hash=trial.text("hash"),
        state=trial.text("state") or "",
        reason=trial.text("reason") or "",
        message=trial.text("message") or "",
        since=trial.time("since"),
        base=trial.count("base"),
        wanted=terms.count("batches") or 3,
        proven=status.part("proven").text("hash"),
    )


def _driver(driver: ObjectPart) -> DriverView:
    leaving, ended = driver.part("leaving"), driver.part("exit")
    return DriverView(
        attempt=driver.count("attempt") or 0,
        pod=driver.text("pod"),
        uid=driver.text("uid"),
        started=driver.time("startedAt"),
        stopping=driver.text("stopping"),
        host=driver.text("host"),
        leaving=leaving.text("pod"),
        leaving_uid=leaving.text("uid"),
        exit_reason=ended.text("reason"),
        exit_message=ended.text("message"),
        exit_code=ended.code("code"),
        exit_at=ended.time("at"),
    )
