"""What the watches showed last, by resource. It only tells when to look; whatever is done is planned from a live look.

Pods are kept as the few values a plan needs, not as objects: five thousand of them must fit. Two things are remembered
that no look can show: when a report last changed, by our clock, and the exit of a pod that is gone.

A live look takes time. What the watches show meanwhile is newer than the list that is on its way, so it is laid over it;
else a pod whose deletion was seen during the look would stand here for ever.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe import parse
from sluice_operator.state.objects import Pod

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sluice_operator.cluster.port import Json
    from sluice_operator.state.objects import Job, Observed
    from sluice_operator.state.status import Exit


class ResourceKey(NamedTuple):
    """A KinesisConsumer, there or not."""

    namespace: str
    name: str


class CacheChange(NamedTuple):
    """What an event is about, and whether it may change anything: figures of a report and echoes of our own writes do not."""

    key: ResourceKey
    matters: bool


class ResourceSnapshot(NamedTuple):
    """A resource as last seen, and the pod of the driver that its status names, with what that reports."""

    body: Json
    driver: Pod | None


REMEMBERED = 8  # drivers of one resource: the present one, the last one, and strays


@dataclass(slots=True)
class LastReport:
    """Of a driver pod: its last report's number, when that was new, and its exit."""

    number: int = -1
    at: datetime | None = None
    exit: Exit | None = None


@dataclass(slots=True)
class CacheEntry:
    """Everything seen of one resource."""

    body: Json | None = None
    pods: dict[str, Pod] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    heard: dict[str, LastReport] = field(default_factory=dict)
    """By uid, the oldest first."""
    looking: list[tuple[Pod | Job, bool]] | None = None
    """What watches showed since a live look began, and whether it was gone; None when nobody looks."""


class Cache:
    """Fed by watches of KinesisConsumers, Pods and Jobs; any order, any repetition."""

    def __init__(self) -> None:
        self._shelves: dict[ResourceKey, CacheEntry] = {}
        self._lock = threading.RLock()  # watches are fed on the event loop, looks are taken on worker threads

    def see(self, kind: str, raw: Json, now: datetime, *, gone: bool = False) -> CacheChange | None:
        """Take in one event; the resource that it is about, or None if it is nobody's."""
        meta = raw["metadata"]
        name = meta["name"] if kind == CONSUMER_KIND else (meta.get("labels") or {}).get(parse.CONSUMER)
        if not name:
            return None
        key = ResourceKey(meta["namespace"], name)
        with self._lock:
            return CacheChange(key, self._shelve(key, kind, raw, now, gone=gone))

    def _shelve(self, key: ResourceKey, kind: str, raw: Json, now: datetime, *, gone: bool) -> bool:
        shelf = self._shelves.setdefault(key, CacheEntry())
        if kind == CONSUMER_KIND:
            matters = gone or _version(shelf.body) != _version(raw)
            shelf.body = _present(shelf.body, raw) if gone else raw
        else:
            item = _listen(shelf, parse.pod(raw), now) if kind == "Pod" else parse.job(raw)
            if shelf.looking is not None:
                shelf.looking.append((item, gone))
            before = _put(shelf.pods if isinstance(item, Pod) else shelf.jobs, item, gone=gone)
            matters = gone or before is None or _without_figures(before) != _without_figures(item)
        if gone and shelf.body is None and not shelf.pods and not shelf.jobs and shelf.looking is None:
            del self._shelves[key]
        return matters

    def body(self, key: ResourceKey) -> Json | None:
        """The resource as last seen; None when it was deleted or has not been seen yet."""
        with self._lock:
            shelf = self._shelves.get(key)
            return shelf.body if shelf else None

    def known(self) -> list[ResourceKey]:
        """Every resource of which anything was seen."""
        with self._lock:
            return list(self._shelves)

    def told(self) -> list[ResourceSnapshot]:
        """Every resource that is there."""
        with self._lock:
            return [ResourceSnapshot(shelf.body, _driver(shelf, shelf.body)) for shelf in self._shelves.values() if shelf.body is not None]

    def heard(self, key: ResourceKey) -> datetime | None:
        """When the last report of the driver that the status names was new, by our clock."""
        with self._lock:
            shelf = self._shelves.get(key)
            pod = _driver(shelf, shelf.body) if shelf and shelf.body else None
            return pod.reported_at if pod else None

    def observed(self, key: ResourceKey) -> Observed:
        """What is there of it, as last seen."""
        with self._lock:
            return self._of(self._shelves.get(key, CacheEntry()))

    def begin_look(self, key: ResourceKey) -> None:
        """A live look begins. One resource is looked at by one pass at a time."""
        with self._lock:
            self._shelves.setdefault(key, CacheEntry()).looking = []

    def live(self, key: ResourceKey, pods: Iterable[Json], jobs: Iterable[Json], now: datetime) -> Observed:
        """The same from a live look; with what watches showed since it began, it becomes what was last seen."""
        with self._lock:
            shelf = self._shelves.setdefault(key, CacheEntry())
            shelf.pods = {pod.name: pod for pod in (_listen(shelf, parse.pod(raw), now) for raw in pods)}
            shelf.jobs = {job.name: job for job in map(parse.job, jobs)}
            found = self._of(shelf)
            newer, shelf.looking = shelf.looking or [], None
            for item, gone in newer:
                _put(shelf.pods if isinstance(item, Pod) else shelf.jobs, item, gone=gone)
            return found

    def lost(self, key: ResourceKey, uid: str) -> None:
        """A look found the resource gone: no watch told its deletion. One that was made anew meanwhile stays."""
        with self._lock:
            shelf = self._shelves.setdefault(key, CacheEntry())
            shelf.looking = None
            if shelf.body is not None and shelf.body["metadata"]["uid"] == uid:
                shelf.body = None

    def forget(self, key: ResourceKey) -> None:
        """The resource is gone, and so is what it had."""
        with self._lock:
            self._shelves.pop(key, None)

    @staticmethod
    def _of(shelf: CacheEntry) -> Observed:
        exits = {uid: heard.exit for uid, heard in shelf.heard.items() if heard.exit}
        return replace(parse.observed(shelf.pods.values(), shelf.jobs.values()), exits=exits)


def _driver(shelf: CacheEntry, body: Json) -> Pod | None:
    named = (body.get("status") or {}).get("driver") or {}
    pod = shelf.pods.get(named.get("pod") or "")
    ours = pod is not None and (pod.owner == body["metadata"]["uid"] or pod.uid == named.get("uid"))
    return pod if ours else None


def _present(body: Json | None, gone: Json) -> Json | None:
    """What is left after `gone` went: a resource made anew under the name stays."""
    return body if body and body["metadata"]["uid"] != gone["metadata"]["uid"] else None


def _version(body: Json | None) -> str | None:
    return body["metadata"].get("resourceVersion") if body else None


def _put(shelf: dict[str, Pod] | dict[str, Job], item: Pod | Job, *, gone: bool) -> Pod | Job | None:
    """What stood there before."""
    present = shelf.get(item.name)
    if not gone:
        shelf[item.name] = item  # type: ignore[assignment]  # a shelf and its items are of one kind
    elif present is not None and present.uid == item.uid:
        del shelf[item.name]
    return present


def _without_figures(item: Pod | Job) -> Pod | Job:
    """Nothing is decided by what is left out here; that a report came is what counts, and it is heard in any case."""
    if not isinstance(item, Pod) or item.report is None:
        return item
    return replace(item, reported_at=None, report=item.report.without_figures)


def _listen(shelf: CacheEntry, pod: Pod, now: datetime) -> Pod:
    """Stamp a driver's report with our time of first seeing its number, and keep its exit."""
    if pod.role != "driver":
        return pod
    heard = shelf.heard.setdefault(pod.uid, LastReport())
    if len(shelf.heard) > REMEMBERED:
        del shelf.heard[next(iter(shelf.heard))]
    heard.exit = heard.exit or pod.exit
    if pod.report and pod.report.number != heard.number:
        heard.number, heard.at = pod.report.number, now
    return replace(pod, reported_at=heard.at)
