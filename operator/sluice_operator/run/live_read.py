"""A live read of one resource, with its Jobs and pods; and the view that the cache gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.cluster.operator_class import belongs
from sluice_operator.cluster.port import CONSUMER_KIND, Unavailable
from sluice_operator.observe import parse, pools
from sluice_operator.observe.cache import ResourceKey, version_of
from sluice_operator.plan import live_read_policy
from sluice_operator.state.serialization import load_report
from sluice_operator.state.status import MigrationState, Phase
from sluice_operator.untrusted.values import objects, part, text, whole

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.cluster.port import Cluster, Json, Labels
    from sluice_operator.observe.hosts import Host
    from sluice_operator.run.shared import ReconcileContext
    from sluice_operator.state.objects import Observed, Pod
    from sluice_operator.state.seats import MemberVersion, Seat
    from sluice_operator.state.view import View

GATES = {"migration": "migrateFrom", "position": "position"}  # parts of the status that name a Job, and the fields of the spec that ask for it
STRAYS = 4  # drivers that only their executors name: a late leader's; and Jobs without a pod
UNLISTED_POOLS = (
    "the API server has not listed the KinesisConsumerPools yet, and nothing is changed before; run `kubectl get kcp -A` to see its answer"
)
"""Of a consumer that has to do with pools: its pool would count as missing, so that it would drain for an edit and not start again."""
JOB_NAME, SPARK_APP = "batch.kubernetes.io/job-name", "spark-app-selector"  # labels that the Job controller and Spark put on pods


def overdue(context: ReconcileContext, key: ResourceKey, view: View) -> bool:
    """Whether the last live read is too old, or there was none. A rollout waits for its standby; behind a driver that works one stands for months."""
    standby = view.status.standby
    waited_for = standby is not None and view.outdated is not None and view.is_meant(standby)
    phase = Phase.STARTING if waited_for else view.status.phase
    return key not in context.looked or view.now >= context.looked[key] + live_read_policy.max_age(phase, len(context.looked))


def cached_view(context: ReconcileContext, key: ResourceKey, body: Json, now: datetime) -> View:
    """What the watches have shown."""
    seen = Seen(context.cache.observed(key), context.hosts.of_namespace(key.namespace))
    return _view(context, key, body, seen, now)


def live_read(context: ReconcileContext, key: ResourceKey, now: datetime, cached: Json, body: Json | None = None) -> tuple[Json, View] | None:
    """Read the resource, its Jobs and its pods from the API server, in this order.

    Pods come last, so that the pod of an ended Job is seen with its exit. What the status or an executor names and no list shows is read by name;
    pods of Jobs and executors without our label are found by Kubernetes' and by Spark's.
    Of a deleted resource the namespace is read first: if that is
    being deleted, the rest is not read.

    Args:
        context: ports and cache.
        key: of the resource.
        now: the time of this reconcile.
        cached: the resource as it was in the cache when this reconcile began.
        body: the resource, if it was read just now.

    Returns:
        The resource and its view; None if it is gone, or belongs to another operator.
    """
    context.cache.begin_live_read(key)
    body = body or context.cluster.get(context.kind, key.namespace, key.name)
    if body is None or not belongs(body, context.settings.resource_class):
        return None
    context.cache.answered(body, version_of(cached))
    _know_members(context, key, body)
    seen = Seen(_observed(context, key, body, now), *_pools(context, key, body, now), _orphans(context, key, body))
    view = _view(context, key, body, seen, now)
    context.looked[key] = now
    return body, view


def _observed(context: ReconcileContext, key: ResourceKey, body: Json, now: datetime) -> Observed:
    if "deletionTimestamp" in body["metadata"] and _namespace_deleted(context.cluster, key.namespace):
        return replace(context.cache.live(key, (), (), now), doomed=True)
    if context.kind != CONSUMER_KIND:
        return context.cache.live(key, _pods_of_pool(context, key, body), (), now)
    labels = {parse.CONSUMER: key.name}
    jobs = context.cluster.list("Job", key.namespace, labels)
    jobs += _by_name(context, key, "Job", Listed(jobs, _named_jobs(body)))
    pods = context.cluster.list("Pod", key.namespace, labels)
    pods += _by_name(context, key, "Pod", Listed(pods, _named_drivers(body, pods)))
    read = PartialRead(body, pods, jobs)
    pods += [*_pods_of_jobs(context, key, read), *_executors_of_spark(context, key, read)]
    return context.cache.live(key, pods, jobs, now)


def _know_members(context: ReconcileContext, key: ResourceKey, body: Json) -> None:
    """A pool without members is stopped. A list that was refused, as while the API server starts, shows none: so they are listed once more.

    Raises:
        Unavailable: the watch has not shown all KinesisConsumers of the namespace.
        ApiError: they cannot be listed now.
    """
    if context.consumers is None or context.consumers.count(key).wanting or text(part(body, "status", "driver"), "pod") is None:
        return
    known = {outline["metadata"]["uid"] for outline in context.consumers.in_namespace(key.namespace)}
    live = context.cluster.list(CONSUMER_KIND, key.namespace, {})
    if any(member["metadata"]["uid"] not in known and belongs(member, context.settings.resource_class) for member in live):
        raise Unavailable(f"the watch has not shown all KinesisConsumers of the namespace {key.namespace} yet")


class Seen(NamedTuple):
    """What was seen of a resource: its own pods and Jobs, pods of pools in its namespace, and executors of these that it waits for."""

    own: Observed
    hosts: tuple[Host, ...] = ()
    executors: tuple[Pod, ...] = ()
    orphans: tuple[tuple[Pod, Seat], ...] = ()


def _orphans(context: ReconcileContext, key: ResourceKey, body: Json) -> tuple[tuple[Pod, Seat], ...]:
    """Of a pool: seats of consumers that are gone. A driver's pod goes with its consumer; a seat would work for ever."""
    if context.consumers is None:
        return ()
    known = {outline["metadata"]["uid"] for outline in context.consumers.in_namespace(key.namespace)}
    hosts = [host for host in context.hosts.of_namespace(key.namespace) if host.pod.owner == body["metadata"]["uid"]]
    unknown = [(host.pod, seat) for host in hosts for seat in host.seats if seat.consumer not in known]
    return tuple((pod, seat) for pod, seat in unknown if _is_gone(context.cluster.get(CONSUMER_KIND, key.namespace, seat.name), seat))


def _is_gone(consumer: Json | None, seat: Seat) -> bool:
    return consumer is None or consumer["metadata"]["uid"] != seat.consumer


def _pods_of_pool(context: ReconcileContext, key: ResourceKey, body: Json) -> list[Json]:
    """Of a pool: by its label, and what its status and its executors name."""
    pods = context.cluster.list("Pod", key.namespace, {parse.POOL: key.name})
    pods += _by_name(context, key, "Pod", Listed(pods, _named_drivers(body, pods, "pool")))
    return pods + _executors_of_spark(context, key, PartialRead(body, pods, []))


def _pools(context: ReconcileContext, key: ResourceKey, body: Json, now: datetime) -> tuple[tuple[Host, ...], tuple[Pod, ...]]:
    """Of a consumer: all pods of pools in its namespace, and those that a status names; executors, if its last seat was in a pod that is not there.

    Nothing is read where there is no pool, and there was none.
    """
    there = context.pools.in_namespace(key.namespace)
    named = text(part(body, "status", "driver"), "host")
    if context.kind != CONSUMER_KIND or not (there or named or pools.is_due(body) or not context.pools_listed):
        return (), ()
    listed = context.cluster.list("Pod", key.namespace, {parse.ROLE: "pool"})
    names = dict.fromkeys([*([named] if named else ()), *(name for pool in there for name in pools.pods_named(pool))])
    raws = listed + _by_name(context, key, "Pod", Listed(listed, list(names)))
    hosts = context.hosts.read(raws, now)
    if named is None or any(host.pod.name == named and host.pod.exit is None and not host.pod.finished for host in hosts):
        return hosts, ()
    return hosts, tuple(
        map(parse.pod, context.cluster.list("Pod", key.namespace, {parse.POOL: named.rpartition("-pool-")[0], parse.ROLE: "executor"}))
    )


class PartialRead(NamedTuple):
    """The resource, and what was read of it so far."""

    body: Json
    pods: list[Json]
    jobs: list[Json]


class Listed(NamedTuple):
    """What a list showed, and the names of what has to be in it."""

    items: list[Json]
    named: list[str]


def _by_name(context: ReconcileContext, key: ResourceKey, kind: str, wanted: Listed) -> list[Json]:
    """What is named and the list lacks, read by name: it may be there without the label. Whose it is, `ownership` says."""
    listed = {text(part(item, "metadata"), "name") for item in wanted.items}
    bodies = [context.cluster.get(kind, key.namespace, name) for name in wanted.named if name not in listed]
    return [_unwatched(item) for item in bodies if item is not None]


def _by_label(context: ReconcileContext, key: ResourceKey, label: Labels, pods: list[Json]) -> list[Json]:
    """Pods with a label that is not ours, without those that were read already."""
    known = {part(pod, "metadata").get("uid") for pod in pods}
    return [_unwatched(pod) for pod in context.cluster.list("Pod", key.namespace, label) if pod["metadata"]["uid"] not in known]


def _unwatched(item: Json) -> Json:
    labels = {**part(item, "metadata", "labels"), parse.UNLISTED: ""}
    return {**item, "metadata": {**item["metadata"], "labels": labels}}


def _named_drivers(body: Json, pods: list[Json], kind: str = "driver") -> list[str]:
    """The driver, its standby, the previous driver while the status says that it leaves, and those that listed executors name as their driver.

    Both of the first two may be there: one that a finalizer holds is not waited for.
    """
    driver = part(body, "status", "driver")
    by_status = (text(place, "pod") for place in (part(driver, "leaving"), driver, part(body, "status", "standby")))
    return [*dict.fromkeys(name for name in (*by_status, *_owners(pods, f"{body['metadata']['name']}-{kind}-")) if name)]


def _owners(pods: list[Json], prefix: str) -> list[str]:
    owners = {text(ref, "name") or "" for pod in pods for ref in objects(part(pod, "metadata"), "ownerReferences") if ref.get("kind") == "Pod"}
    return sorted(name for name in owners if name.startswith(prefix))[:STRAYS]


def _named_jobs(body: Json) -> list[str]:
    """The Jobs of the present tries or of the last ones. One that has ended is there until the resource or the next try ends it."""
    return [name for each in GATES if (name := text(part(body, "status", each), "job"))]


def _pods_of_jobs(context: ReconcileContext, key: ResourceKey, read: PartialRead) -> list[Json]:
    """Pods without our label of Jobs of which no pod was listed, by the label that Kubernetes gives them. A Job's pod may outlive it."""
    owners = {parse.controller(part(pod, "metadata"))["owner"] for pod in read.pods}
    jobs = {part(job, "metadata").get("uid"): text(part(job, "metadata"), "name") for job in read.jobs}
    for gate in (part(read.body, "status", each) for each in GATES):
        if gate.get("state") != MigrationState.COMPLETE:
            jobs.setdefault(text(gate, "uid"), text(gate, "job"))
    ours = tuple(f"{key.name}-{kind}-" for kind in ("migrate", "reset"))
    names = sorted(name for uid, name in jobs.items() if uid and name and uid not in owners and name.startswith(ours))
    named = [pod for name in names[:STRAYS] for pod in _by_label(context, key, {JOB_NAME: name}, read.pods)]
    if not _begins(read.body):
        return named
    unnamed = _by_label(context, key, {JOB_NAME: None}, [*read.pods, *named])
    return [*named, *(pod for pod in unnamed if (text(part(pod, "metadata", "labels"), JOB_NAME) or "").startswith(ours))]


def _begins(body: Json) -> bool:
    """Whether the first Job of its kind is to be made. The pod of an earlier resource's may still work, and no name of its Job is known."""
    asked = (part(body, "spec"), part(body, "status", "lastGoodSpec"))
    return any(spec.get(field) and gate not in part(body, "status") for gate, field in GATES.items() for spec in asked)


def _executors_of_spark(context: ReconcileContext, key: ResourceKey, read: PartialRead) -> list[Json]:
    """Executors without our label, by Spark's own.

    They are looked for when the driver does not work: they are waited for, and then one is made. And when more have registered than were listed.
    """
    driver = part(read.body, "status", "driver")
    there = [pod for pod in read.pods if (meta := part(pod, "metadata")).get("name") == driver.get("pod") and "deletionTimestamp" not in meta]
    works = [pod for pod in there if driver.get("uid") in {None, pod["metadata"]["uid"]}]
    if works and "leaving" not in driver and "deletionTimestamp" not in read.body["metadata"] and not _lacks_executors(works[0], read):
        return []
    last, about = whole(driver.get("attempt")) or 0, parse.resource(read.body, context.kind)
    unseen = last - 1 if driver.get("pod") and not driver.get("uid") else 0
    attempts = sorted(
        {last, unseen, *(whole(place.get("attempt")) or 0 for place in (part(driver, "leaving"), part(read.body, "status", "standby")))} - {0}
    )
    return [pod for attempt in attempts for pod in _by_label(context, key, {SPARK_APP: about.app(attempt)}, read.pods)]


def _lacks_executors(driver: Json, read: PartialRead) -> bool:
    """Whether more executors have registered with this driver, by its report, than there are pods of it. With `executor.inDriver` it is its own."""
    report = load_report(parse.report(driver))
    listed = [pod for pod in read.pods if parse.controller(part(pod, "metadata"))["owner"] == driver["metadata"]["uid"]]
    alone = part(read.body, "spec", "executor").get("inDriver") is True
    return report is not None and not alone and report.executors > len(listed)


def _namespace_deleted(cluster: Cluster, namespace: str) -> bool:
    there = cluster.get("Namespace", namespace, "")
    return there is not None and "deletionTimestamp" in there["metadata"]


def _view(context: ReconcileContext, key: ResourceKey, body: Json, seen: Seen, now: datetime) -> View:
    refusal, observed = context.refusals.get(key), replace(seen.own, failing=context.failing.get(key))
    if refusal and refusal.generation == body["metadata"].get("generation", 0):
        observed = replace(observed, refusal=refusal.trouble, refused_until=refusal.until, standby_refused=refusal.standby)
    if context.kind != CONSUMER_KIND:
        count, unread = (context.consumers or context.cache).count(key), _unread(context, key, body)
        members = replace(count, all=count.all + unread, wanting=count.wanting + unread, orphans=seen.orphans)
        if "deaths" in part(body, "status") or any(pod.exit for pod in seen.own.drivers):
            members = replace(members, versions=_versions(context, key), busy=_busy(context, key))
        return pools.pool_view(body, observed, now, context.settings.policy, members)
    view = parse.view(body, observed, now, context.settings.policy)
    named = view.wanted.spec.pool if view.wanted else None
    if (named or view.driver.host) and not context.pools_listed:
        raise Unavailable(UNLISTED_POOLS)
    pool = pools.Pool(named, context.pools.body(ResourceKey(key.namespace, named)), context.settings.policy) if named else None
    return pools.member_view(view, pool, seen.hosts, seen.executors, pool.out(body) if pool else None)


def _unread(context: ReconcileContext, key: ResourceKey, body: Json) -> int:
    """Seats in the pool's pods of consumers that are too large to be read. They are left alone, so they need their pod."""
    cache, hosts = context.consumers or context.cache, context.hosts.of_namespace(key.namespace)
    own = [seat for host in hosts if host.pod.owner == body["metadata"]["uid"] for seat in host.seats if seat.exit is None]
    return sum(cache.is_cut(ResourceKey(key.namespace, seat.name)) for seat in own)


def _versions(context: ReconcileContext, key: ResourceKey) -> dict[str, MemberVersion]:
    cache = context.consumers or context.cache
    seen = [(body, cache.member(member)) for member in cache.members(key) if (body := cache.body(member)) is not None]
    return {body["metadata"]["uid"]: replace(pools.version_of(body), wants=about is not None and about.wants) for body, about in seen}


def _busy(context: ReconcileContext, key: ResourceKey) -> dict[str, frozenset[str]]:
    """By pod of a pool, the members whose last report has an open batch."""
    hosts = context.hosts.of_namespace(key.namespace)
    return {host.pod.uid: frozenset(seat.name for seat in host.seats if _has_batch(seat)) for host in hosts}


def _has_batch(seat: Seat) -> bool:
    return seat.exit is None and seat.report is not None and seat.report.open_batch is not None
