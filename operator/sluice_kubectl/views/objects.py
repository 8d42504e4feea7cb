"""Pods and events of a KinesisConsumer as a person sees them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sluice_kubectl.views.documents import shown
from sluice_kubectl.views.part import ObjectPart
from sluice_operator.names import GROUP

Json = dict[str, Any]
DRIVE = ("pool", "driver")  # roles
EARLIEST = datetime.min.replace(tzinfo=UTC)
ROLES = {"pool": 0, "driver": 1, "executor": 2, "migration": 3, "redrive": 4}


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
    unreadable: tuple[str, ...] = ()

    @property
    def drives(self) -> bool:
        """Whether it is a driver's, or that of a pool, which runs the drivers of its members."""
        return self.role in DRIVE

    @property
    def container(self) -> str:
        """Name of the container that does the work."""
        return "driver" if self.drives else self.role


@dataclass(frozen=True, slots=True)
class EventView:
    """An event about a resource."""

    at: datetime | None
    warning: bool
    reason: str
    message: str
    count: int
    unreadable: tuple[str, ...] = ()


def pods(bodies: Iterable[Json], standby: str | None = None) -> tuple[PodView, ...]:
    """Driver, executors, migration, redrive; the newest of each first, but the driver that works before its standby, which is newer.

    The pod of a pool comes before a driver that still leaves it: a consumer names it only while it runs there.
    """

    def place(pod: PodView) -> tuple[int, bool, float, str]:
        return (ROLES.get(pod.role, len(ROLES)), pod.name == standby, -(pod.created or EARLIEST).timestamp(), pod.name)

    return tuple(sorted((shown(_pod(body)) for body in bodies), key=place))


def host_of(consumer: Json) -> str | None:
    """Name of the pod of a pool that its driver runs in, or still leaves."""
    driver = ObjectPart.whole(consumer).part("status", "driver")
    return driver.text("host") if driver.has("pod") or driver.has("leaving") else None


def pool_of(host: str) -> str:
    """Name of the pool of this pod."""
    return host.rpartition("-pool-")[0]


def of_host(host: str, pods_of_pool: Iterable[Json]) -> list[Json]:
    """Without other pods of the pool in which drivers run: the previous one, and whatever carries the label."""
    labels = ((body, ObjectPart.whole(body).part("metadata")) for body in pods_of_pool)
    return [body for body, meta in labels if meta.text("name") == host or meta.part("labels").text(f"{GROUP}/role") != "pool"]


def standby_of(consumer: Json) -> str | None:
    """Name of the pod that stands by, if there is one."""
    return ObjectPart.whole(consumer).part("status").part("standby").text("pod")


def events(bodies: Iterable[Json]) -> tuple[EventView, ...]:
    """The oldest first."""
    return tuple(sorted((shown(_event(body)) for body in bodies), key=lambda event: event.at or EARLIEST))


def _pod(body: Json) -> PodView:
    whole = ObjectPart.whole(body)
    meta, spec, status = whole.part("metadata"), whole.part("spec"), whole.part("status")
    containers = status.parts("containerStatuses")
    return PodView(
        name=meta.must("name"),
        uid=meta.must("uid"),
        role=meta.part("labels").text(f"{GROUP}/role") or "",
        state=next(filter(None, map(_trouble, containers)), status.text("phase") or "Unknown"),
        ready=bool(containers) and all(container.flag("ready") for container in containers),
        restarts=sum(container.count("restartCount") or 0 for container in containers),
        node=spec.text("nodeName") or "",
        created=meta.time("creationTimestamp"),
        leaving=meta.has("deletionTimestamp"),
        metrics_port=_metrics_port(spec),
        unreadable=whole.noted(),
    )


def _trouble(container: ObjectPart) -> str:
    state = container.part("state")
    return state.part("waiting" if state.has("waiting") else "terminated").text("reason") or ""


def _metrics_port(spec: ObjectPart) -> int | None:
    named = (port for container in spec.parts("containers") for port in container.parts("ports") if port.text("name") == "metrics")
    return next((port.count("containerPort") for port in named), None)


def _event(body: Json) -> EventView:
    whole = ObjectPart.whole(body)
    at = whole.time("lastTimestamp") or whole.time("eventTime") or whole.part("metadata").time("creationTimestamp")
    warning, count = whole.text("type") == "Warning", whole.count("count") or 1
    return EventView(at, warning, whole.text("reason") or "", whole.text("message") or "", count, whole.noted())
