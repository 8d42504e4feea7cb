"""What the watches showed last, by resource. It says when a live read is needed; actions are planned from that read.

A pod is kept as the few values that a plan needs, not as an object: 5,000 pods must fit into memory. Three facts are kept that a live read cannot
show. They are when a report last changed, when a deletion was seen first, both by this process's clock, and the exit of a pod that is gone.

A call takes time. What the watches show during it replaces what its answer says: they show each change once, and the last one last.
Otherwise a pod whose deletion was shown during a read would stay in the cache, and a spec that was edited during it would be forgotten.

Watches are fed on the event loop, live reads run on worker threads. What strangers wrote is parsed before the lock is taken.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND
from sluice_operator.observe import parse
from sluice_operator.observe.kept import packed, unpacked
from sluice_operator.state.objects import Pod
from sluice_operator.state.seats import Members
from sluice_operator.state.serialization import load_report
from sluice_operator.state.status import Phase
from sluice_operator.untrusted.values import named, part, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sluice_operator.cluster.port import Json
    from sluice_operator.state.objects import Job, Observed, Report
    from sluice_operator.state.status import Exit


class ResourceKey(NamedTuple):
    """Namespace and name of a KinesisConsumer, which may exist or not."""

    namespace: str
    name: str


class CacheChange(NamedTuple):
    """The resource that a watch event is about.

    Attributes:
        matters: a plan may depend on it; not so on figures, or on the operator's own write.
        reported: a driver that the status names said something new.
    """

    key: ResourceKey
    matters: bool
    reported: bool = False


class ResourceSnapshot(NamedTuple):
    """The outline of a resource as last seen, and the pod of the driver that its status names, with its report."""

    body: Json
    driver: Pod | None


POOL_ROLE = "pool"


class PoolMember(NamedTuple):
    """A consumer that names this pool: whether it shall run, whether it is ready, and its edition, which changes with what it is to run."""

    pool: str
    wants: bool
    ready: bool
    edition: tuple[object, ...]


MOST_SECONDS = 10**9  # of a grace period: 31 years
REMEMBERED = 8  # drivers of one resource: the present one, the last one, and strays


@dataclass(slots=True)
class LastReport:
    """Of a driver pod.

    Attributes:
        text: hash of its last report's text. decoded: that report.
        number: of it. at: when this number was seen first.
        batch: the open one of that report. batch_at: when this batch was seen first.
        began: when the pod was seen first to have started.
    """

    text: int | None = None
    decoded: Report | None = None
    number: int = -1
    at: datetime | None = None
    batch: int | None = None
    batch_at: datetime | None = None
    began: datetime | None = None
    exit: Exit | None = None

    def hear(self, report: Report, now: datetime) -> None:
        """Take in a report, or the same once more."""
        if report.number != self.number:
            self.number, self.at = report.number, now
        if report.open_batch != self.batch:
            self.batch, self.batch_at = report.open_batch, now if report.open_batch is not None else None


class StoredResource(NamedTuple):
    """A resource as it is kept; its outline (`kept.outline`), for what is looked at often; and the drivers that its status names."""

    kept: Json | bytes | None = None
    outline: Json | None = None
    named: tuple[str | None, ...] = ()

    @staticmethod
    def of(body: Json) -> StoredResource:
        """The form of a resource."""
        driver = part(body, "status", "driver")
        named = (text(driver, "pod"), text(part(driver, "leaving"), "pod"), text(part(body, "status", "standby"), "pod"))
        return StoredResource(*packed(body), named)

    @property
    def body(self) -> Json | None:
        """The resource; None if there is none."""
        return None if self.kept is None else unpacked(self.kept)


NOTHING = StoredResource()


@dataclass(slots=True)
class CacheEntry:
    """Everything seen of one resource."""

    stored: StoredResource = NOTHING
    pods: dict[str, Pod] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    reports: dict[str, LastReport] = field(default_factory=dict)
    """By uid, the oldest first."""
    newer: list[tuple[Pod | Job, bool]] | None = None
    """What watches showed since a live read began, and whether it was deleted; None while there is no live read."""

    @property
    def outline(self) -> Json | None:
        """Of the resource; None if there is none."""
        return self.stored.outline


class Cache:
    """Fed by watches of KinesisConsumers, Pods and Jobs; any order, any repetition. Another one is fed with KinesisConsumerPools and their pods."""

    def __init__(self, kind: str = CONSUMER_KIND) -> None:
        self.kind = kind
        self._entries: dict[ResourceKey, CacheEntry] = {}
        self._members: dict[ResourceKey, set[ResourceKey]] = {}
        self._lock = threading.RLock()

    def see(self, kind: str, raw: Json, now: datetime, *, gone: bool = False) -> CacheChange | None:
        """Take in one event. The change of the resource that it is about; None if it is about no resource.

        Raises:
            Unreadable: the object has no name, namespace or uid.
        """
        owner = parse.consumer if self.kind == CONSUMER_KIND else parse.pool
        name = named(raw, "name") if kind == self.kind else owner(raw)
        if not name:
            return None
        key = ResourceKey(named(raw, "namespace"), name)
        if kind == self.kind:
            return CacheChange(key, self._resource(key, raw, gone=gone))
        item, new_report = self._pod(key, raw) if kind == "Pod" else (parse.job(raw), None)
        return CacheChange(key, self._item(key, item, (raw, now, new_report), gone=gone), new_report is not None)

    def _resource(self, key: ResourceKey, raw: Json, *, gone: bool) -> bool:
        uid, stored = named(raw, "uid"), NOTHING if gone else StoredResource.of(raw)
        with self._lock:
            entry = self._entries.setdefault(key, CacheEntry())
            matters = gone or version_of(entry.outline) != version_of(raw)
            if not gone or entry.outline is None or entry.outline["metadata"]["uid"] == uid:  # a new resource of the same name stays
                self._store(key, entry, stored)
            self._drop_if_empty(key, entry)
            return matters

    def _pod(self, key: ResourceKey, raw: Json) -> tuple[Pod, int | None]:
        """A pod with its report, if it is a driver that the status names, and the hash of the report's text, if that is new.

        What others report is not read, and what was decoded before is not decoded again.
        """
        pod, text = _pod(raw), parse.report(raw)
        with self._lock:
            entry = self._entries.get(key, CacheEntry())
            is_named, last = pod.name in entry.stored.named, entry.reports.get(pod.uid, LastReport())
            hashed, decoded = last.text, last.decoded
        if text is None or pod.role != "driver" or not is_named:
            return pod, None
        return (replace(pod, report=decoded), None) if hash(text) == hashed else (replace(pod, report=load_report(text)), hash(text))

    def _item(self, key: ResourceKey, item: Pod | Job, seen: tuple[Json, datetime, int | None], *, gone: bool) -> bool:
        with self._lock:
            entry = self._entries.setdefault(key, CacheEntry())
            item = _stamped(entry, item, *seen) if isinstance(item, Pod) else item
            if entry.newer is not None:
                entry.newer.append((item, gone))
            shown = _put(entry.pods if isinstance(item, Pod) else entry.jobs, item, gone=gone)
            self._drop_if_empty(key, entry)
            return gone or shown is None or _without_figures(shown) != _without_figures(item)

    def _drop_if_empty(self, key: ResourceKey, entry: CacheEntry) -> None:
        if entry.stored is NOTHING and not entry.pods and not entry.jobs and entry.newer is None:
            del self._entries[key]

    def _store(self, key: ResourceKey, entry: CacheEntry, stored: StoredResource) -> None:
        for outline, change in ((entry.outline, set[ResourceKey].discard), (stored.outline, set[ResourceKey].add)):
            if outline is not None and outline["pool"] is not None:
                pool = ResourceKey(key.namespace, outline["pool"])
                members = self._members.setdefault(pool, set())
                change(members, key)
                if not members:
                    del self._members[pool]
        entry.stored = stored

    def members(self, pool: ResourceKey) -> list[ResourceKey]:
        """The consumers that name this pool."""
        with self._lock:
            return list(self._members.get(pool, ()))

    def member(self, key: ResourceKey) -> PoolMember | None:
        """What the pool that a consumer names has to know of it; None: it names none."""
        with self._lock:
            entry = self._entries.get(key)
            return _member(entry.outline) if entry and entry.outline else None

    def count(self, pool: ResourceKey) -> Members:
        """How many consumers name this pool, shall run, and are ready."""
        with self._lock:
            members = [member for key in self._members.get(pool, ()) if (member := self.member(key))]
        return Members(len(members), sum(member.wants for member in members), sum(member.ready for member in members))

    def in_namespace(self, namespace: str) -> list[Json]:
        """The outlines of all resources of a namespace."""
        with self._lock:
            return [entry.outline for key, entry in self._entries.items() if key.namespace == namespace and entry.outline is not None]

    def body(self, key: ResourceKey) -> Json | None:
        """The resource as last seen; None when it was deleted or has not been seen yet."""
        with self._lock:
            stored = self._entries.get(key, CacheEntry()).stored
        return stored.body

    def is_cut(self, key: ResourceKey) -> bool:
        """Whether the resource is so large that its spec was not read: each call about it costs the API server a hundred times a usual one."""
        with self._lock:
            entry = self._entries.get(key)
            return entry is not None and entry.outline is not None and entry.outline["spec"] is not None

    def known(self) -> list[ResourceKey]:
        """Every resource of which anything was seen."""
        with self._lock:
            return list(self._entries)

    def snapshots(self) -> list[ResourceSnapshot]:
        """Every resource that exists."""
        with self._lock:
            there = ((entry, body) for entry in self._entries.values() if (body := entry.outline) is not None)
            return [ResourceSnapshot(body, _driver(entry, body)) for entry, body in there]

    def last_report_at(self, key: ResourceKey) -> datetime | None:
        """When the last report of the driver that the status names was seen first, by this process's clock."""
        with self._lock:
            entry = self._entries.get(key)
            pod = _driver(entry, entry.outline) if entry and entry.outline else None
            return pod.reported_at if pod else None

    def driver_uid(self, key: ResourceKey) -> str | None:
        """The uid of the driver that the status names."""
        with self._lock:
            entry = self._entries.get(key)
            return text(part(entry.outline, "status", "driver"), "uid") if entry else None

    def observed(self, key: ResourceKey) -> Observed:
        """Its pods and Jobs, as last seen."""
        with self._lock:
            return self._of(self._entries.get(key, CacheEntry()))

    def begin_live_read(self, key: ResourceKey) -> None:
        """A live read begins. Of one resource there is one at a time."""
        with self._lock:
            self._entries.setdefault(key, CacheEntry()).newer = []

    def live(self, key: ResourceKey, pods: Iterable[Json], jobs: Iterable[Json], now: datetime) -> Observed:
        """Pods and Jobs of a live read. The cache keeps them, with what the watches have shown since the read began."""
        read, known = [(self._pod(key, raw)[0], raw) for raw in pods], {job.name: job for job in map(parse.job, jobs)}
        with self._lock:
            entry = self._entries.setdefault(key, CacheEntry())
            entry.pods, entry.jobs = {pod.name: _stamped(entry, pod, raw, now) for pod, raw in read}, known
            observed = self._of(entry)
            shown, entry.newer = entry.newer or [], None
            for item, gone in shown:
                _put(entry.pods if isinstance(item, Pod) else entry.jobs, item, gone=gone)
            return observed

    def answered(self, body: Json, before: str | None) -> None:
        """The resource, as the answer to a call of ours has it. It replaces only the version that was in the cache before the call."""
        self._replace(ResourceKey(body["metadata"]["namespace"], body["metadata"]["name"]), before, StoredResource.of(body))

    def _replace(self, key: ResourceKey, before: str | None, stored: StoredResource) -> None:
        """If it still has the version that it had before the call. One that is gone stays gone."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.outline is not None and version_of(entry.outline) == before:
                self._store(key, entry, stored)

    def lost(self, key: ResourceKey, before: str | None) -> None:
        """A live read found no such resource, or one of another operator. Only the version that was in the cache before the read goes."""
        with self._lock:
            self._entries.setdefault(key, CacheEntry()).newer = None
            self._replace(key, before, NOTHING)

    def forget(self, key: ResourceKey) -> None:
        """Drop the resource, its pods and its Jobs."""
        with self._lock:
            if entry := self._entries.pop(key, None):
                self._store(key, entry, NOTHING)

    def forget_deleted(self, key: ResourceKey) -> None:
        """Drop what is left of a resource that is gone. A new resource of the same name stays."""
        with self._lock:
            if self._entries.get(key, CacheEntry()).stored is NOTHING:
                self._entries.pop(key, None)

    @staticmethod
    def _of(entry: CacheEntry) -> Observed:
        exits = {uid: report.exit for uid, report in entry.reports.items() if report.exit}
        return replace(parse.observed(entry.pods.values(), entry.jobs.values()), exits=exits)


def _driver(entry: CacheEntry, body: Json) -> Pod | None:
    driver = part(body, "status", "driver")
    pod = entry.pods.get(text(driver, "pod") or "")
    ours = pod is not None and (pod.owner == body["metadata"]["uid"] or pod.uid == driver.get("uid"))
    return pod if ours else None


def _member(outline: Json) -> PoolMember | None:
    if outline["pool"] is None:
        return None
    status, wants = outline["status"], not outline["rests"]
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in status["conditions"])
    return PoolMember(outline["pool"], wants and status["phase"] != Phase.COMPLETED, wants and ready, outline["edition"])


def version_of(body: Json | None) -> str | None:
    """The resourceVersion; None of nothing."""
    return body["metadata"].get("resourceVersion") if body else None


def _put(items: dict[str, Pod] | dict[str, Job], item: Pod | Job, *, gone: bool) -> Pod | Job | None:
    """Store or drop an item. What was stored before."""
    present = items.get(item.name)
    if not gone:
        items[item.name] = item  # type: ignore[assignment]  # a dict has pods or Jobs, and the item is of its kind
    elif present is not None and present.uid == item.uid:
        del items[item.name]
    return present


def _without_figures(item: Pod | Job) -> Pod | Job:
    """Without what no plan depends on. That a report came is recorded in `LastReport`."""
    if not isinstance(item, Pod):
        return item
    return replace(item, reported_at=None, batch_at=None, report=item.report.without_figures if item.report else None)


def _pod(raw: Json) -> Pod:
    pod = parse.pod(raw)
    in_pools = pod.role == POOL_ROLE and pod.owner_kind == POOL_KIND and parse.pool(raw)  # in the cache of pools it is the driver
    return replace(pod, role="driver") if in_pools else pod


def ending_here(before: Pod | None, pod: Pod, raw: Json, now: datetime) -> Pod:
    """The pod with the end of its grace period by this process's clock: the API server's may be minutes off.

    The period counts from when this process saw that end first; after a restart of the operator, it counts again.
    """
    if pod.gone_by is None:
        return pod
    pod = replace(pod, told_gone_by=pod.gone_by)
    if before is not None and (before.uid, before.told_gone_by) == (pod.uid, pod.told_gone_by):
        return replace(pod, gone_by=before.gone_by)
    grace = whole(part(raw, "metadata").get("deletionGracePeriodSeconds")) or 0
    return replace(pod, gone_by=now + timedelta(seconds=min(grace, MOST_SECONDS)))


def _stamped(entry: CacheEntry, pod: Pod, raw: Json, now: datetime, new_report: int | None = None) -> Pod:
    """The pod with what of its report was seen first when. Its exit is kept, and `new_report`, the hash of a new report."""
    pod = ending_here(entry.pods.get(pod.name), pod, raw, now)
    if pod.role != "driver":
        return pod
    report = entry.reports.setdefault(pod.uid, LastReport())
    if len(entry.reports) > REMEMBERED:
        del entry.reports[next(iter(entry.reports))]
    report.exit, report.began = report.exit or pod.exit, report.began or (now if pod.started_at else None)
    if new_report is not None:
        report.text, report.decoded = new_report, pod.report
    if pod.report:
        report.hear(pod.report, now)
    return replace(pod, reported_at=report.at, batch_at=report.batch_at, seen_at=report.began)
