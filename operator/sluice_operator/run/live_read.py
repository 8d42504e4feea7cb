"""A live read of one resource, with its Jobs and pods; and the view that the cache gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.cluster.operator_class import belongs
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe import parse
from sluice_operator.observe.cache import version_of
from sluice_operator.plan import live_read_policy
from sluice_operator.untrusted.values import objects, part, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sluice_operator.cluster.port import Cluster, Json
    from sluice_operator.observe.cache import ResourceKey
    from sluice_operator.run.shared import ReconcileContext
    from sluice_operator.state.objects import Observed
    from sluice_operator.state.view import View

STRAYS = 4  # drivers that only their executors name: a late leader's


def overdue(context: ReconcileContext, key: ResourceKey, view: View) -> bool:
    """Whether the last live read is too old, or there was none."""
    return key not in context.looked or view.now >= context.looked[key] + live_read_policy.max_age(view.status.phase, len(context.looked))


def cached_view(context: ReconcileContext, key: ResourceKey, body: Json, now: datetime) -> View:
    """What the watches have shown."""
    return _view(context, key, body, context.cache.observed(key), now)


def live_read(context: ReconcileContext, key: ResourceKey, now: datetime, cached: Json, body: Json | None = None) -> tuple[Json, View] | None:
    """Read the resource, its Jobs and its pods from the API server, in this order.

    Pods come last, so that the pod of an ended Job is seen with its exit. What the status or an executor names and no list shows is read by name.
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
    jobs += _unlisted(context, key, "Job", Listed(jobs, _named_jobs(body)))
    pods = context.cluster.list("Pod", key.namespace, labels)
    pods += _unlisted(context, key, "Pod", Listed(pods, _named_drivers(body, pods)))
    return context.cache.live(key, pods, jobs, now)


class NamedObject(NamedTuple):
    """An object that the status or an executor names, and the labels that it was made with."""

    name: str
    labels: dict[str, str]


class Listed(NamedTuple):
    """What a list showed, and what has to be in it."""

    items: list[Json]
    named: list[NamedObject]


def _unlisted(context: ReconcileContext, key: ResourceKey, kind: str, wanted: Listed) -> Iterator[Json]:
    """What is named and the list lacks, read by name: it may be there without the label. Whose it is, `ownership` says."""
    listed = {text(part(item, "metadata"), "name") for item in wanted.items}
    for named in (named for named in wanted.named if named.name not in listed):
        found = context.cluster.get(kind, key.namespace, named.name)
        if found is not None:
            labels = {**part(found, "metadata", "labels"), parse.CONSUMER: key.name, parse.UNLISTED: "", **named.labels}
            yield {**found, "metadata": {**found["metadata"], "labels": labels}}


def _named_drivers(body: Json, pods: list[Json]) -> list[NamedObject]:
    """The driver, the one before it while the status says that it leaves, and those that listed executors name as their driver.

    Both of the first two may be there: one that a finalizer holds is not waited for.
    """
    driver = part(body, "status", "driver")
    by_status = (text(one, "pod") for one in (part(driver, "leaving"), driver))
    names = dict.fromkeys(name for name in (*by_status, *_owners(pods, f"{body['metadata']['name']}-driver-")) if name)
    return [NamedObject(name, {parse.ROLE: "driver", parse.ATTEMPT: name.rpartition("-")[2]}) for name in names]


def _owners(pods: list[Json], prefix: str) -> list[str]:
    """Some of the pods that own these: strangers may have named many."""
    owners = {text(ref, "name") or "" for pod in pods for ref in objects(part(pod, "metadata"), "ownerReferences") if ref.get("kind") == "Pod"}
    return sorted(name for name in owners if name.startswith(prefix))[:STRAYS]


def _named_jobs(body: Json) -> list[NamedObject]:
    """The Job of the present try or of the last one. One that has ended is there until the resource or the next try ends it."""
    name = text(part(body, "status", "migration"), "job")
    return [NamedObject(name, {parse.ROLE: "migration"})] if name else []


def _namespace_deleted(cluster: Cluster, namespace: str) -> bool:
    there = cluster.get("Namespace", namespace, "")
    return there is not None and "deletionTimestamp" in there["metadata"]


def _view(context: ReconcileContext, key: ResourceKey, body: Json, observed: Observed, now: datetime) -> View:
    refusal, observed = context.refusals.get(key), replace(observed, failing=context.failing.get(key))
    if refusal and refusal.generation == body["metadata"].get("generation", 0):
        observed = replace(observed, refusal=refusal.trouble, refused_until=refusal.until)
    return parse.view(body, observed, now, parse.Bounds(context.settings.policy, context.cache.elder(key)))
