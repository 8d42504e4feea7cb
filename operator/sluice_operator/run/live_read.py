"""A live read of one resource, with its Jobs and pods; and the view that the cache gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.cluster.operator_class import belongs
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe import parse
from sluice_operator.observe.cache import version_of
from sluice_operator.plan import live_read_policy

if TYPE_CHECKING:
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

    Pods come last, so that the pod of an ended Job is seen with its exit. Of a deleted resource the namespace is read first: if that is
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
    pods = context.cluster.list("Pod", key.namespace, labels)
    return context.cache.live(key, pods, jobs, now)


def _namespace_deleted(cluster: Cluster, namespace: str) -> bool:
    there = cluster.get("Namespace", namespace, "")
    return there is not None and "deletionTimestamp" in there["metadata"]


def _view(context: ReconcileContext, key: ResourceKey, body: Json, observed: Observed, now: datetime) -> View:
    refusal = context.refusals.get(key)
    if refusal and refusal.generation == body["metadata"].get("generation", 0):
        observed = replace(observed, refusal=refusal.trouble, refused_until=refusal.until)
    return parse.view(body, observed, now, context.settings.policy)
