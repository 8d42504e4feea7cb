"""One KinesisConsumer as a person sees it (docs/reference/status.md, "Status"). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sluice_kubectl.views.documents import moment
from sluice_kubectl.views.words import shown
from sluice_operator.names import GROUP

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
    """The present driver, or the last one. `leaving` is the pod of the one before it, while that ends its work."""

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
    """What a KinesisConsumer says of itself. `behind`: its status is of an earlier spec than the present one; `letters`: where dead letters go."""

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


def consumer(body: Json) -> ConsumerView:
    """The resource as the API server has it; a status that is not there yet is Pending. Each text is one printable line."""
    return shown(_consumer(body))


def _consumer(body: Json) -> ConsumerView:
    meta, spec, status = body["metadata"], body["spec"], body.get("status") or {}
    conditions = tuple(_condition(one) for one in status.get("conditions") or ())
    by_type = {one.type: one for one in conditions}
    ready, stalled = by_type.get("Ready"), by_type.get("Stalled")
    restarts, migration = status.get("restarts") or {}, status.get("migration") or {}
    return ConsumerView(
        namespace=meta["namespace"],
        name=meta["name"],
        stream=spec["stream"]["name"],
        region=spec["stream"].get("region") or "",
        table=(spec.get("checkpoints") or {}).get("table") or f"sluice_{meta['namespace']}_{meta['name']}",
        phase=status.get("phase") or "Pending",
        ready=ready.status if ready else "Unknown",
        reason=ready.reason if ready else "NotSeenYet",
        message=ready.message if ready else "no operator has written a status",
        stalled=stalled is not None and stalled.status == "True",
        paused=is_paused(body),
        suspended=spec.get("suspend") is True,
        deleting="deletionTimestamp" in meta,
        behind=status.get("observedGeneration") != meta.get("generation"),
        executors=status.get("replicas") or 0,
        desired=spec.get("replicas", 1),
        created=moment(meta.get("creationTimestamp")),
        failures=restarts.get("count") or 0,
        next_start=moment(restarts.get("nextAt")),
        migration=migration.get("state"),
        next_migration=moment(migration.get("nextAt")),
        letters=_letters((spec.get("onError") or {}).get("deadLetter") or {}),
        figures=_figures(status.get("stream") or {}),
        driver=_driver(status.get("driver") or {}),
        conditions=conditions,
    )


def is_paused(body: Json) -> bool:
    """Whether the annotation keeps the operator's hands off; any value but `false` does."""
    note = (body["metadata"].get("annotations") or {}).get(f"{GROUP}/paused")
    return note is not None and note != "false"


def by_need(consumers: Iterable[ConsumerView]) -> tuple[ConsumerView, ...]:
    """Those that need a person first, then those that are not ready, then by lag; else by name."""
    return tuple(sorted(consumers, key=lambda one: (not one.stalled, one.ready == "True", -(one.figures.lag_millis or 0), one.namespace, one.name)))


def _letters(place: Json) -> str | None:
    """Where dead letters go: `path s3a://…`, `sqs https://…`, `kinesis letters`."""
    return next((f"{kind} {place[kind]}" for kind in ("path", "sqs", "kinesis") if place.get(kind)), None)


def _condition(one: Json) -> ConditionView:
    speaks = one["status"] != AT_REST.get(one["type"], "False")
    return ConditionView(one["type"], one["status"], one.get("reason", ""), one.get("message", ""), moment(one.get("lastTransitionTime")), speaks)


def _figures(stream: Json) -> FiguresView:
    return FiguresView(
        lag_millis=stream.get("millisBehindLatest"),
        records_per_second=stream.get("recordsPerSecond"),
        records=stream.get("records"),
        dead_letters=stream.get("deadLetters"),
        batch=stream.get("batch"),
        open_batch=stream.get("openBatch"),
        batch_at=moment(stream.get("batchAt")),
        open_shards=stream.get("openShards"),
        ended_shards=stream.get("endedShards"),
        held_shards=stream.get("heldShards"),
        reported=moment(stream.get("reportedAt")),
    )


def _driver(driver: Json) -> DriverView:
    leaving, ended = driver.get("leaving") or {}, driver.get("exit") or {}
    return DriverView(
        attempt=driver.get("attempt") or 0,
        pod=driver.get("pod"),
        uid=driver.get("uid"),
        started=moment(driver.get("startedAt")),
        stopping=driver.get("stopping"),
        leaving=leaving.get("pod"),
        leaving_uid=leaving.get("uid"),
        exit_reason=ended.get("reason"),
        exit_message=ended.get("message"),
        exit_code=ended.get("code"),
        exit_at=moment(ended.get("at")),
    )
