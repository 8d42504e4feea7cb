"""Pods and events of a KinesisConsumer as a person sees them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sluice_kubectl.views.documents import moment
from sluice_kubectl.views.words import shown
from sluice_operator.names import GROUP

Json = dict[str, Any]
EARLIEST = datetime.min.replace(tzinfo=UTC)
ROLES = {"driver": 0, "executor": 1, "migration": 2, "redrive": 3}


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod. `state` is the reason of a container that waits or has ended, else the pod's phase."""

    name: str
    uid: str
    role: str
    state: str
    ready: bool
    restarts: int
    node: str
    created: datetime | None
    leaving: bool
    metrics_port: int | None


@dataclass(frozen=True, slots=True)
class EventView:
    """An event about a resource."""

    at: datetime | None
    warning: bool
    reason: str
    message: str
    count: int


def pods(bodies: Iterable[Json]) -> tuple[PodView, ...]:
    """Driver, executors, migration, redrive; the youngest of each first."""
    found = (shown(_pod(body)) for body in bodies)
    return tuple(sorted(found, key=lambda pod: (ROLES.get(pod.role, len(ROLES)), -(pod.created or EARLIEST).timestamp(), pod.name)))


def events(bodies: Iterable[Json]) -> tuple[EventView, ...]:
    """The oldest first."""
    return tuple(sorted((shown(_event(body)) for body in bodies), key=lambda event: event.at or EARLIEST))


def _pod(body: Json) -> PodView:
    meta, status = body["metadata"], body.get("status") or {}
    containers = status.get("containerStatuses") or ()
    return PodView(
        name=meta["name"],
        uid=meta["uid"],
        role=(meta.get("labels") or {}).get(f"{GROUP}/role", ""),
        state=next(filter(None, map(_trouble, containers)), status.get("phase") or "Unknown"),
        ready=bool(containers) and all(one.get("ready") for one in containers),
        restarts=sum(one.get("restartCount") or 0 for one in containers),
        node=body["spec"].get("nodeName") or "",
        created=moment(meta.get("creationTimestamp")),
        leaving="deletionTimestamp" in meta,
        metrics_port=_metrics_port(body["spec"]),
    )


def _trouble(container: Json) -> str:
    state = container.get("state") or {}
    return str((state.get("waiting") or state.get("terminated") or {}).get("reason") or "")


def _metrics_port(spec: Json) -> int | None:
    named = (port for one in spec.get("containers") or () for port in one.get("ports") or () if port.get("name") == "metrics")
    return next((int(port["containerPort"]) for port in named), None)


def _event(body: Json) -> EventView:
    at = body.get("lastTimestamp") or body.get("eventTime") or body["metadata"].get("creationTimestamp")
    return EventView(moment(at), body.get("type") == "Warning", body.get("reason", ""), body.get("message", ""), body.get("count") or 1)
