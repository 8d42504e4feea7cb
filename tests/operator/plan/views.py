"""Literals for tests of the planner: one view of one consumer, `orders`, whose driver runs. A test changes what its row is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sluice_operator.names import FINALIZER
from sluice_operator.resource.changes import DesiredSpec, migration_hash, position_hash
from sluice_operator.resource.fields import parse
from sluice_operator.state.objects import Job, Observed, Pod, Report, Resource
from sluice_operator.state.status import DriverStatus, Exit, MigrationStatus, PositionStatus, Status
from sluice_operator.state.view import View

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
UID = "consumer-uid"
RAW: dict[str, Any] = {"stream": {"name": "orders", "region": "eu-west-1"}, "replicas": 2, "pipeline": {"entrypoint": "orders.pipeline:process"}}
RESOURCE = Resource(namespace="shop", name="orders", uid=UID, version="7", generation=1, finalizers=(FINALIZER,))
REPORT = Report(number=9, phase="Running", open_shards=4, held_shards=4, executors=2)


def seconds(number: float) -> datetime:
    return NOW + timedelta(seconds=number)


def wanted(**fields: Any) -> DesiredSpec:
    raw = {**RAW, **fields}
    return DesiredSpec(parse(raw), raw)


MIGRATING = wanted(migrateFrom={"table": "orders-kcl"})
HASH = migration_hash("shop", "orders", MIGRATING) or ""
MOVING = wanted(position={"id": "one", "to": {"timestamp": "2026-11-21T12:00:00Z"}})
MOVE = position_hash("shop", "orders", MOVING) or ""


def driver(**fields: Any) -> Pod:
    """The pod of attempt 1: it runs, and said just now that it holds all 4 shards with 2 executors."""
    pod = Pod(name="orders-driver-1", uid="driver-1", role="driver", attempt=1, owner=UID, phase="Running", target="2", started_at=seconds(-60))
    pod = replace(pod, table_hash=wanted().table_hash)
    heard: dict[str, Any] = {"report": REPORT, "reported_at": NOW}
    return replace(pod, **heard | fields)


def executor(number: int, **fields: Any) -> Pod:
    return replace(Pod(name=f"orders-exec-{number}", uid=f"exec-{number}", role="executor", owner="driver-1", phase="Running"), **fields)


EXECUTORS = (executor(1), executor(2))


def ended(code: int, reason: str = "Failed", **fields: Any) -> Pod:
    return driver(phase="Failed", exit=Exit(code=code, reason=reason, message="sink is full", at=NOW), **fields)


def attempt(number: int = 1, **fields: Any) -> DriverStatus:
    status = DriverStatus(
        attempt=number, pod=f"orders-driver-{number}", uid=f"driver-{number}", spec_hash=wanted().driver_hash, started_at=seconds(-60)
    )
    return replace(status, **fields)


def gone(number: int = 1, **fields: Any) -> DriverStatus:
    return attempt(number, pod=None, uid=None, **fields)


def job(**fields: Any) -> Job:
    return replace(Job(name=f"orders-migrate-{HASH}-1", uid="job-1", owner=UID, owner_kind="KinesisConsumer"), **fields)


def migration(**fields: Any) -> MigrationStatus:
    status = MigrationStatus(hash=HASH, spec_hash=MIGRATING.job_hash, job=f"orders-migrate-{HASH}-1", tries=1, uid="job-1")
    return replace(status, **fields)


def position(**fields: Any) -> PositionStatus:
    status = PositionStatus(id="one", hash=MOVE, spec_hash=MOVING.reset_job_hash, job=f"orders-reset-{MOVE}-1", tries=1, uid="job-1")
    return replace(status, **fields)


def view(
    *,
    spec: DesiredSpec | None = None,
    problem: str | None = None,
    resource: Resource = RESOURCE,
    status: Status | None = None,
    observed: Observed | None = None,
) -> View:
    """One view at NOW. What is not given: a consumer whose driver and executors run as its spec asks."""
    present = None if problem else spec or wanted()
    status = Status(observed_generation=1, driver=attempt()) if status is None else status
    observed = Observed(drivers=(driver(),), executors=EXECUTORS) if observed is None else observed
    return View(resource=resource, asked=present, problem=problem, status=status, observed=observed, now=NOW)
