"""Doing what a plan says: one small function per action, each safe to repeat.

Nothing is decided here. "Already exists" means done if it is ours; "gone already" means done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice_operator.apply import manifests
from sluice_operator.cluster.port import CONSUMER_KIND, Exists, Rejected, Unavailable
from sluice_operator.names import FINALIZER
from sluice_operator.observe.parse import SPEC_HASH, TARGET
from sluice_operator.state.actions import Action, AddFinalizer, CreateDriver, CreateJob, DeleteJob, DeletePod, RemoveFinalizer, Retarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.cluster.port import Cluster, Json
    from sluice_operator.settings import Settings
    from sluice_operator.state.view import View


@dataclass(frozen=True, slots=True)
class ActionContext:
    """An action's surroundings; the view holds the status as it was just written."""

    cluster: Cluster
    view: View
    settings: Settings


def apply(doing: ActionContext, action: Action) -> None:
    """Carry out one action.

    Raises:
        ApiError: see `cluster.port`; the caller looks again.
    """
    DEEDS[type(action)](doing, action)


def add_finalizer(doing: ActionContext) -> Json:
    """The resource with our finalizer on it, if it is still as it was seen.

    Raises:
        ApiError: see `cluster.port`; the caller looks again.
    """
    return _finalizers(doing, [*doing.view.resource.finalizers, FINALIZER])


def _add_finalizer(doing: ActionContext, _action: AddFinalizer) -> None:
    add_finalizer(doing)


def _remove_finalizer(doing: ActionContext, _action: RemoveFinalizer) -> None:
    _finalizers(doing, [name for name in doing.view.resource.finalizers if name != FINALIZER])


def _finalizers(doing: ActionContext, names: list[str]) -> Json:
    resource = doing.view.resource
    changes = {"metadata": {"resourceVersion": resource.version, "finalizers": names}}
    return doing.cluster.patch(CONSUMER_KIND, resource.namespace, resource.name, changes)


def _create_driver(doing: ActionContext, _action: CreateDriver) -> None:
    view = doing.view
    if view.wanted is None:
        raise ValueError("no driver without a spec")
    if view.wanted.spec.executor.pod_template:
        doing.cluster.check(manifests.executor_sample(view.resource, view.wanted, doing.settings))
    _create(doing.cluster, manifests.driver_pod(view.resource, view.wanted, view.driver, doing.settings))


def _create_job(doing: ActionContext, _action: CreateJob) -> None:
    view = doing.view
    if view.wanted is None or view.status.migration is None:
        raise ValueError("no Job without a spec and a migration")
    job = manifests.migration_job(view.resource, view.wanted, view.status.migration, doing.settings)
    doing.cluster.check(manifests.pod_of(job))  # what the Job controller would be told, and tells nobody but in events
    _create(doing.cluster, job)


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


def _delete_pod(doing: ActionContext, action: DeletePod) -> None:
    doing.cluster.delete("Pod", doing.view.resource.namespace, action.name, action.uid, action.grace)


def _delete_job(doing: ActionContext, action: DeleteJob) -> None:
    doing.cluster.delete("Job", doing.view.resource.namespace, action.name, action.uid)


def _retarget(doing: ActionContext, action: Retarget) -> None:
    changes = {"metadata": {"uid": action.uid, "annotations": {TARGET: str(action.executors)}}}
    doing.cluster.patch("Pod", doing.view.resource.namespace, action.pod, changes)


DEEDS: dict[type, Callable[..., None]] = {
    AddFinalizer: _add_finalizer,
    RemoveFinalizer: _remove_finalizer,
    CreateDriver: _create_driver,
    CreateJob: _create_job,
    DeletePod: _delete_pod,
    DeleteJob: _delete_job,
    Retarget: _retarget,
}
