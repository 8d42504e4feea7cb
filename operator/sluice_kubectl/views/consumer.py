"""One KinesisConsumer as a person sees it (docs/reference/status.md, "Status"). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sluice_kubectl.views.part import ObjectPart
from sluice_kubectl.views.words import shown
from sluice_operator.names import GROUP, LETTER_PLACES, default_table

Json = dict[str, Any]
AT_REST = {"Draining": "False", "Migrated": "True", "Ready": "True", "SpecValid": "True", "DriverHealthy": "True"}
"""Conditions that have nothing to say in this status. Any other condition speaks when it is True."""


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
class DriverView:
    """The present driver, or the last one. `leaving` is the pod of the previous driver, while it ends its work."""

    attempt: int
    pod: str | None
    uid: str | None
    started: datetime | None
    stopping: str | None
    leaving: str | None
    leaving_uid: str | None
    exit_reason: str | None
    exit_message: str | None
    exit_code: int | None
    exit_at: datetime | None


@dataclass(frozen=True, slots=True)
class FiguresView:
    """Figures of the driver's last report; None where it has not said. `lag_millis` is as old as the report."""

    lag_millis: int | None
    records_per_second: float | None
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
class ConsumerView:
    """What a KinesisConsumer says of itself. `behind`: its status is of an earlier spec. `letters` is where dead letters go.

    `unreadable` are the first five fields that are there and cannot be read.
    """

    namespace: str
    name: str
    stream: str
    region: str
    table: str
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
    letters: str | None
    figures: FiguresView
    driver: DriverView
    conditions: tuple[ConditionView, ...]
    unreadable: tuple[str, ...]


def consumer(body: Json) -> ConsumerView:
    """The resource as the API server has it, whatever its form; a status that is not there yet is Pending. Each text is one printable line."""
    return shown(_consumer(body))


def _consumer(body: Json) -> ConsumerView:
    whole = ObjectPart.whole(body)
    meta, spec, status = whole.part("metadata"), whole.part("spec"), whole.part("status")
    conditions = tuple(map(_condition, status.parts("conditions")))
    by_type = {one.type: one for one in conditions}
    ready, stalled = by_type.get("Ready"), by_type.get("Stalled")
    restarts, migration, stream, desired = status.part("restarts"), status.part("migration"), spec.part("stream"), spec.count("replicas")
    namespace, name = meta.must("namespace"), meta.must("name")
    return ConsumerView(
        namespace=namespace,
        name=name,
        stream=stream.must("name"),
        region=stream.text("region") or "",
        table=spec.part("checkpoints").text("table") or default_table(namespace, name),
        phase=status.text("phase") or "Pending",
        ready=ready.status if ready else "Unknown",
        reason=ready.reason if ready else "NotSeenYet",
        message=ready.message if ready else "no operator has written a status",
        stalled=stalled is not None and stalled.status == "True",
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
        letters=_letters(spec.part("onError", "deadLetter")),
        figures=_figures(status.part("stream")),
        driver=_driver(status.part("driver")),
        conditions=conditions,
        unreadable=whole.noted(),
    )


def is_paused(body: Json) -> bool:
    """Whether the annotation keeps the operator's hands off; any value but `false` does."""
    note = ObjectPart.whole(body).part("metadata", "annotations").value.get(f"{GROUP}/paused")
    return note is not None and note != "false"


def dynamodb_endpoint(body: Json) -> str | None:
    """Another DynamoDB than the region's, for the checkpoint table."""
    return ObjectPart.whole(body).part("spec", "stream").text("dynamodbEndpoint")


def by_need(consumers: Iterable[ConsumerView]) -> tuple[ConsumerView, ...]:
    """Those that need attention first, then those that are not ready, then by lag; else by name."""
    return tuple(sorted(consumers, key=lambda one: (not one.stalled, one.ready == "True", -(one.figures.lag_millis or 0), one.namespace, one.name)))


def _letters(place: ObjectPart) -> str | None:
    """Where dead letters go: `path s3a://…`, `sqs https://…`, `kinesis letters`."""
    return next((f"{kind} {found}" for kind in LETTER_PLACES if (found := place.text(kind))), None)


def _condition(one: ObjectPart) -> ConditionView:
    type_, status = one.must("type"), one.must("status")
    speaks = status != AT_REST.get(type_, "False")
    return ConditionView(type_, status, one.text("reason") or "", one.text("message") or "", one.time("lastTransitionTime"), speaks)


def _figures(stream: ObjectPart) -> FiguresView:
    return FiguresView(
        lag_millis=stream.count("millisBehindLatest"),
        records_per_second=stream.number("recordsPerSecond"),
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


def _driver(driver: ObjectPart) -> DriverView:
    leaving, ended = driver.part("leaving"), driver.part("exit")
    return DriverView(
        attempt=driver.count("attempt") or 0,
        pod=driver.text("pod"),
        uid=driver.text("uid"),
        started=driver.time("startedAt"),
        stopping=driver.text("stopping"),
        leaving=leaving.text("pod"),
        leaving_uid=leaving.text("uid"),
        exit_reason=ended.text("reason"),
        exit_message=ended.text("message"),
        exit_code=ended.code("code"),
        exit_at=ended.time("at"),
    )
