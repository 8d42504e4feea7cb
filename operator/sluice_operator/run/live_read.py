"""A live read of one resource, with its Jobs and pods; and the view that the cache gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.cluster.operator_class import belongs
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe import parse
from sluice_operator.observe.cache import version_of
from sluice_operator.plan import live_read_policy
from sluice_operator.untrusted.values import part, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sluice_operator.cluster.port import Cluster, Json
    from sluice_operator.observe.cache import ResourceKey
    from sluice_operator.run.shared import ReconcileContext
    from sluice_operator.state.objects import Observed
    from sluice_operator.state.view import View


def overdue(context: ReconcileContext, key: ResourceKey, view: View) -> bool:
    """Whether the last live read is too old, or there was none."""
    return key not in context.looked or view.now >= context.looked[key] + live_read_policy.max_age(view.status.phase, len(context.looked))


def cached_view(context: ReconcileContext, key: ResourceKey, body: Json, now: datetime) -> View:
    """What the watches have shown."""
    return _view(context, key, body, context.cache.observed(key), now)


def live_read(context: ReconcileContext, key: ResourceKey, now: datetime, cached: Json, body: Json | None = None) -> tuple[Json, View] | None:
    """Read the resource, its Jobs and its pods from the API server, in this order.

    Pods come last, so that the pod of an ended Job is seen with its exit. What the status names and no list shows is read by name.
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
    pods += _unlisted(context, key, "Pod", Listed(pods, _named_drivers(body)))
    return context.cache.live(key, pods, jobs, now)


class NamedObject(NamedTuple):
    """An object that the status names, and the labels that it was made with. `uid` is None until it was seen."""

    name: str
    uid: str | None
    labels: dict[str, str]


def _unlisted(context: ReconcileContext, key: ResourceKey, kind: str, objects: Listed) -> Iterator[Json]:
    """What the status names and the list lacks, read by name: it may be there without the label. It is the resource's all the same."""
    listed = {text(part(item, "metadata"), "name") for item in objects.items}
    for named in (named for named in objects.named if named.name not in listed):
        found = context.cluster.get(kind, key.namespace, named.name)
        if found is not None and named.uid in {None, found["metadata"]["uid"]}:
            labels = {**part(found, "metadata", "labels"), parse.CONSUMER: key.name, parse.UNLISTED: "", **named.labels}
            yield {**found, "metadata": {**found["metadata"], "labels": labels}}


class Listed(NamedTuple):
    """What a list showed, and what has to be in it."""

    items: list[Json]
    named: list[NamedObject]


def _named_drivers(body: Json) -> list[NamedObject]:
    """The driver, and the one before it while the status says that it leaves. Both may be there: one that a finalizer holds is not waited for."""
    driver = part(body, "status", "driver")
    return [
        NamedObject(text(one, "pod") or "", text(one, "uid"), {parse.ROLE: "driver", parse.ATTEMPT: str(whole(one.get("attempt")) or 0)})
        for one in (part(driver, "leaving"), driver)
        if text(one, "pod")
    ]


def _named_jobs(body: Json) -> list[NamedObject]:
    """The Job of the present try or of the last one. One that has ended is there until the resource or the next try ends it."""
    migration = part(body, "status", "migration")
    name = text(migration, "job")
    return [NamedObject(name, text(migration, "uid"), {parse.ROLE: "migration"})] if name else []


def _namespace_deleted(cluster: Cluster, namespace: str) -> bool:
    there = cluster.get("Namespace", namespace, "")
    return there is not None and "deletionTimestamp" in there["metadata"]


def _view(context: ReconcileContext, key: ResourceKey, body: Json, observed: Observed, now: datetime) -> View:
    refusal = context.refusals.get(key)
    if refusal and refusal.generation == body["metadata"].get("generation", 0):
        observed = replace(observed, refusal=refusal.trouble, refused_until=refusal.until)
    return parse.view(body, observed, now, parse.Bounds(context.settings.policy, context.cache.elder(key)))
