"""Carry out the actions of a plan: one small function per action, each safe to repeat.

Nothing is decided here. An object that exists already counts as created, if it is this resource's. One that is gone counts as deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice_operator.apply import manifests, migration_job
from sluice_operator.apply.cluster_identity import identities
from sluice_operator.cluster.port import CONSUMER_KIND, Exists, Rejected, Unavailable
from sluice_operator.names import FINALIZER
from sluice_operator.observe.parse import SPEC_HASH, TARGET
from sluice_operator.resource.sizes import other_resources
from sluice_operator.state.actions import Action, AddFinalizer, CreateDriver, CreateJob, DeleteJob, DeletePod, RemoveFinalizer, Retarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.cluster.port import Cluster, Json
    from sluice_operator.settings import Settings
    from sluice_operator.state.view import View

FULL = "exceeded quota"  # the API server's words for an amount; a quota that asks for a size says "must specify"


@dataclass(frozen=True, slots=True)
class ActionContext:
    """What an action needs. The view has the status as it was just written."""

    cluster: Cluster
    view: View
    settings: Settings


def apply(context: ActionContext, action: Action) -> None:
    """Carry out one action.

    Raises:
        ApiError: see `cluster.port`; the caller reconciles again.
    """
    HANDLERS[type(action)](context, action)


def add_finalizer(context: ActionContext) -> Json:
    """The resource with our finalizer on it, if it is still as it was seen.

    Raises:
        ApiError: see `cluster.port`; the caller reconciles again.
    """
    return _finalizers(context, [*context.view.resource.finalizers, FINALIZER])


def _add_finalizer(context: ActionContext, _action: AddFinalizer) -> None:
    add_finalizer(context)


def _remove_finalizer(context: ActionContext, _action: RemoveFinalizer) -> None:
    _finalizers(context, [name for name in context.view.resource.finalizers if name != FINALIZER])


def _finalizers(context: ActionContext, names: list[str]) -> Json:
    resource = context.view.resource
    changes = {"metadata": {"resourceVersion": resource.version, "finalizers": names}}
    return context.cluster.patch(CONSUMER_KIND, resource.namespace, resource.name, changes)


def _create_driver(context: ActionContext, _action: CreateDriver) -> None:
    view = context.view
    if view.wanted is None:
        raise ValueError("no driver without a spec")
    spec = view.wanted.spec
    if (spec.executor_template or other_resources(spec.executor)) and not spec.executor.in_driver:
        _check_executor(context.cluster, manifests.executor_sample(view.resource, view.wanted, context.settings))
    clusters = identities(context.cluster, context.settings.cluster_name)
    _create(context.cluster, manifests.driver_pod(view.resource, view.wanted, view.driver, context.settings, clusters))


def _check_executor(cluster: Cluster, sample: Json) -> None:
    """A dry run of one more executor. That there is no room for it now is no error of the template: Spark asks again until there is."""
    try:
        cluster.check(sample)
    except Rejected as refused:
        if FULL not in refused.message:
            raise


def _create_job(context: ActionContext, _action: CreateJob) -> None:
    view = context.view
    if view.wanted is None or view.status.migration is None:
        raise ValueError("no Job without a spec and a migration")
    job = migration_job.migration_job(view.resource, view.wanted, view.status.migration, context.settings)
    context.cluster.check(migration_job.pod_of(job))  # the Job controller would report a refusal in events only
    _create(context.cluster, job)


def _create(cluster: Cluster, body: Json) -> None:
    try:
        cluster.create(body)
    except Exists as error:
        meta = body["metadata"]
        there = cluster.get(body["kind"], meta["namespace"], meta["name"])
        if there is None:
            raise Unavailable(f"{meta['name']} was there and is gone") from error
        if _identity(there) != _identity(body):
            message = f"{body['kind']} {meta['name']} exists and is not this resource's; delete or rename it"
            raise Rejected("NameTaken", message) from error


def _identity(body: Json) -> tuple[list[str], str | None]:
    meta = body["metadata"]
    owners = [ref["uid"] for ref in meta.get("ownerReferences") or () if ref.get("controller")]
    return owners, (meta.get("annotations") or {}).get(SPEC_HASH)


def _delete_pod(context: ActionContext, action: DeletePod) -> None:
    context.cluster.delete("Pod", context.view.resource.namespace, action.name, action.uid, action.grace)


def _delete_job(context: ActionContext, action: DeleteJob) -> None:
    context.cluster.delete("Job", context.view.resource.namespace, action.name, action.uid)


def _retarget(context: ActionContext, action: Retarget) -> None:
    changes = {"metadata": {"uid": action.uid, "annotations": {TARGET: str(action.executors)}}}
    context.cluster.patch("Pod", context.view.resource.namespace, action.pod, changes)


HANDLERS: dict[type, Callable[..., None]] = {
    AddFinalizer: _add_finalizer,
    RemoveFinalizer: _remove_finalizer,
    CreateDriver: _create_driver,
    CreateJob: _create_job,
    DeletePod: _delete_pod,
    DeleteJob: _delete_job,
    Retarget: _retarget,
}
