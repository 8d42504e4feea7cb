"""A live read of one resource, with its Jobs and pods; and the view that the cache gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.cluster.operator_class import belongs
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe import parse
from sluice_operator.observe.cache import version_of
from sluice_operator.plan import live_read_policy
from sluice_operator.state.status import MigrationState
from sluice_operator.untrusted.values import objects, part, text, whole

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.cluster.port import Cluster, Json
    from sluice_operator.observe.cache import ResourceKey
    from sluice_operator.run.shared import ReconcileContext
    from sluice_operator.state.objects import Observed
    from sluice_operator.state.view import View

STRAYS = 4  # drivers that only their executors name: a late leader's; and Jobs without a pod
JOB_NAME, SPARK_APP = "batch.kubernetes.io/job-name", "spark-app-selector"  # labels that the Job controller and Spark put on pods


def overdue(context: ReconcileContext, key: ResourceKey, view: View) -> bool:
    """Whether the last live read is too old, or there was none."""
    return key not in context.looked or view.now >= context.looked[key] + live_read_policy.max_age(view.status.phase, len(context.looked))


def cached_view(context: ReconcileContext, key: ResourceKey, body: Json, now: datetime) -> View:
    """What the watches have shown."""
    return _view(context, key, body, context.cache.observed(key), now)


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
    body = body or context.cluster.get(CONSUMER_KIND, key.namespace, key.name)
    if body is None or not belongs(body, context.settings.resource_class):
        return None
    context.cache.answered(body, version_of(cached))
    view = _view(context, key, body, _observed(context, key, body, now), now)
    context.looked[key] = now
    return body, view


def _observed(context: ReconcileContext, key: ResourceKey, body: Json, now: datetime) -> Observed:
    if "deletionTimestamp" in body["metadata"] and _namespace_deleted(context.cluster, key.namespace):
        return replace(context.cache.live(key, (), (), now), doomed=True)
    labels = {parse.CONSUMER: key.name}
    jobs = context.cluster.list("Job", key.namespace, labels)
    jobs += _by_name(context, key, "Job", Listed(jobs, _named_jobs(body)))
    pods = context.cluster.list("Pod", key.namespace, labels)
    pods += _by_name(context, key, "Pod", Listed(pods, _named_drivers(body, pods)))
    found = Found(body, pods, jobs)
    pods += [*_pods_of_jobs(context, key, found), *_executors_of_spark(context, key, found)]
    return context.cache.live(key, pods, jobs, now)


class Found(NamedTuple):
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
    found = [context.cluster.get(kind, key.namespace, name) for name in wanted.named if name not in listed]
    return [_unwatched(item) for item in found if item is not None]


def _by_label(context: ReconcileContext, key: ResourceKey, label: dict[str, str], pods: list[Json]) -> list[Json]:
    """Pods with a label that is not ours, without those that were read already."""
    known = {part(pod, "metadata").get("uid") for pod in pods}
    return [_unwatched(pod) for pod in context.cluster.list("Pod", key.namespace, label) if pod["metadata"]["uid"] not in known]


def _unwatched(item: Json) -> Json:
    """The item, marked as one that no watch shows."""
    labels = {**part(item, "metadata", "labels"), parse.UNLISTED: ""}
    return {**item, "metadata": {**item["metadata"], "labels": labels}}


def _named_drivers(body: Json, pods: list[Json]) -> list[str]:
    """The driver, the previous driver while the status says that it leaves, and those that listed executors name as their driver.

    Both of the first two may be there: one that a finalizer holds is not waited for.
    """
    driver = part(body, "status", "driver")
    by_status = (text(one, "pod") for one in (part(driver, "leaving"), driver))
    return [*dict.fromkeys(name for name in (*by_status, *_owners(pods, f"{body['metadata']['name']}-driver-")) if name)]


def _owners(pods: list[Json], prefix: str) -> list[str]:
    """Some of the pods that own these: strangers may have named many."""
    owners = {text(ref, "name") or "" for pod in pods for ref in objects(part(pod, "metadata"), "ownerReferences") if ref.get("kind") == "Pod"}
    return sorted(name for name in owners if name.startswith(prefix))[:STRAYS]


def _named_jobs(body: Json) -> list[str]:
    """The Job of the present try or of the last one. One that has ended is there until the resource or the next try ends it."""
    name = text(part(body, "status", "migration"), "job")
    return [name] if name else []


def _pods_of_jobs(context: ReconcileContext, key: ResourceKey, found: Found) -> list[Json]:
    """Pods without our label of Jobs of which no pod was listed, by the label that Kubernetes gives them. A Job's pod may outlive it."""
    migration, owners = part(found.body, "status", "migration"), {parse.controller(part(pod, "metadata"))["owner"] for pod in found.pods}
    jobs = {part(job, "metadata").get("uid"): text(part(job, "metadata"), "name") for job in found.jobs}
    if migration.get("state") != MigrationState.COMPLETE:
        jobs.setdefault(text(migration, "uid"), text(migration, "job"))
    names = sorted(name for uid, name in jobs.items() if uid and name and uid not in owners and name.startswith(f"{key.name}-migrate-"))
    return [pod for name in names[:STRAYS] for pod in _by_label(context, key, {JOB_NAME: name}, found.pods)]


def _executors_of_spark(context: ReconcileContext, key: ResourceKey, found: Found) -> list[Json]:
    """Executors without our label, by Spark's own. They are looked for when the driver does not work: they are waited for, and then one is made."""
    driver = part(found.body, "status", "driver")
    there = [meta for pod in found.pods if (meta := part(pod, "metadata")).get("name") == driver.get("pod") and "deletionTimestamp" not in meta]
    if (
        any(driver.get("uid") in {None, meta["uid"]} for meta in there)
        and "leaving" not in driver
        and "deletionTimestamp" not in found.body["metadata"]
    ):
        return []
    last = whole(driver.get("attempt")) or 0
    unseen = last - 1 if driver.get("pod") and not driver.get("uid") else 0
    attempts = sorted({last, unseen, whole(part(driver, "leaving").get("attempt")) or 0} - {0})
    return [pod for attempt in attempts for pod in _by_label(context, key, {SPARK_APP: f"{key.name}-{attempt}"}, found.pods)]


def _namespace_deleted(cluster: Cluster, namespace: str) -> bool:
    there = cluster.get("Namespace", namespace, "")
    return there is not None and "deletionTimestamp" in there["metadata"]


def _view(context: ReconcileContext, key: ResourceKey, body: Json, observed: Observed, now: datetime) -> View:
    refusal, observed = context.refusals.get(key), replace(observed, failing=context.failing.get(key))
    if refusal and refusal.generation == body["metadata"].get("generation", 0):
        observed = replace(observed, refusal=refusal.trouble, refused_until=refusal.until)
    return parse.view(body, observed, now, parse.Bounds(context.settings.policy, context.cache.holder(key, body, context.settings.policy)))
