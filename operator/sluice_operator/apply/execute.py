"""Carry out the actions of a plan: one small function per action, each safe to repeat.

Nothing is decided here. An object that exists already counts as created, if it is this resource's. One that is gone counts as deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice_operator.apply import jobs, manifests
from sluice_operator.cluster.port import POOL_KIND, Exists, Rejected, Unavailable
from sluice_operator.names import FINALIZER
from sluice_operator.observe import seats
from sluice_operator.observe.parse import SPEC_HASH, TARGET
from sluice_operator.resource.sizes import other_resources
from sluice_operator.state.actions import (
    Action,
    AddFinalizer,
    CreateDriver,
    CreateJob,
    CreateResetJob,
    CreateStandby,
    DeleteJob,
    DeletePod,
    RemoveFinalizer,
    Retarget,
)
from sluice_operator.state.objects import FULL
from sluice_operator.state.seats import ClearSeat, EndSeat, PutSeat
from sluice_operator.untrusted.values import part, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice_operator.cluster.port import Cluster, Json
    from sluice_operator.settings import Settings
    from sluice_operator.state.status import DriverStatus
    from sluice_operator.state.view import View

SYSTEM = "kube-system"
"""Its uid lasts as long as the cluster's etcd. Kubernetes has no other name for a cluster."""


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
    return context.cluster.patch(resource.kind, resource.namespace, resource.name, changes)


def _create_driver(context: ActionContext, _action: CreateDriver) -> None:
    _create_pod(context, context.view.driver, standby=False)


def _create_standby(context: ActionContext, _action: CreateStandby) -> None:
    standby = context.view.status.standby
    if standby is None:
        raise ValueError("no standby without its name")
    _create_pod(context, context.view.promoted(standby), standby=True)


def _create_pod(context: ActionContext, driver: DriverStatus, *, standby: bool) -> None:
    view = context.view
    if view.wanted is None:
        raise ValueError("no driver without a spec")
    wanted = view.wanted.with_executors(view.executors)
    spec = wanted.spec
    if (spec.executor_template or other_resources(spec.executor)) and not spec.executor.in_driver:
        _check_executor(context.cluster, manifests.executor_sample(view.resource, wanted, context.settings))
    clusters = identities(context.cluster, context.settings.cluster_name)
    if view.resource.kind == POOL_KIND:
        _create(context.cluster, manifests.pool_pod(view.resource, wanted, driver, context.settings, clusters))
    else:
        _create(context.cluster, manifests.driver_pod(view.resource, wanted, driver, context.settings, clusters, standby=standby))


def _check_executor(cluster: Cluster, sample: Json) -> None:
    """A dry run of one more executor. That there is no room for it now is not an error of the template: Spark asks again until there is."""
    try:
        cluster.check(sample)
    except Rejected as refused:
        if FULL not in refused.message:
            raise


def _create_job(context: ActionContext, _action: CreateJob) -> None:
    view = context.view
    if view.wanted is None or view.status.migration is None:
        raise ValueError("no Job without a spec and a migration")
    _create_gated(context.cluster, jobs.migration_job(view.resource, view.wanted, view.status.migration, context.settings))


def _create_reset_job(context: ActionContext, _action: CreateResetJob) -> None:
    view = context.view
    if view.wanted is None or view.status.position is None:
        raise ValueError("no Job without a spec and a position")
    clusters = identities(context.cluster, context.settings.cluster_name)
    _create_gated(context.cluster, jobs.reset_job(view.resource, view.wanted, view.status.position, context.settings, clusters))


def _create_gated(cluster: Cluster, job: Json) -> None:
    cluster.check(jobs.pod_of(job))  # the Job controller would report a refusal in events only
    _create(cluster, job)


def _create(cluster: Cluster, body: Json) -> None:
    try:
        cluster.create(body)
    except Exists as error:
        meta = body["metadata"]
        there = cluster.get(body["kind"], meta["namespace"], meta["name"])
        if there is None:
            raise Unavailable(f"{meta['name']} was there and is gone") from error
        if _identity(there) != _identity(body):
            kind, name = body["kind"], meta["name"]
            way_out = f"ask whose it is, then run `kubectl delete {kind.lower()} {name} -n {meta['namespace']}`"
            raise Rejected("NameTaken", f"{kind} {name} exists and is not this resource's; {way_out}") from error


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


def _put_seat(context: ActionContext, action: PutSeat) -> None:
    """Condition: the pod still has this uid."""
    view = context.view
    if view.wanted is None:
        raise ValueError("no seat without a spec")
    config = manifests.seat_config(view.resource, view.wanted, view.driver, context.settings)
    _annotate(context, action, seats.put(action.seat, action.uid, config, table_made=view.driver.generation is not None))


def _end_seat(context: ActionContext, action: EndSeat) -> None:
    """Condition: the pod still has this uid."""
    _annotate(context, action, seats.leave(action.seat))


def _clear_seat(context: ActionContext, action: ClearSeat) -> None:
    """Condition: the pod still has this uid."""
    _annotate(context, action, seats.cleared(action.seat))


def _annotate(context: ActionContext, action: PutSeat | EndSeat | ClearSeat, notes: Mapping[str, str | None]) -> None:
    context.cluster.patch("Pod", context.view.resource.namespace, action.host, {"metadata": {"uid": action.uid, "annotations": {**notes}}})


HANDLERS: dict[type, Callable[..., None]] = {
    AddFinalizer: _add_finalizer,
    RemoveFinalizer: _remove_finalizer,
    CreateDriver: _create_driver,
    CreateStandby: _create_standby,
    CreateJob: _create_job,
    CreateResetJob: _create_reset_job,
    DeletePod: _delete_pod,
    DeleteJob: _delete_job,
    Retarget: _retarget,
    PutSeat: _put_seat,
    EndSeat: _end_seat,
    ClearSeat: _clear_seat,
}


def identities(cluster: Cluster, name: str) -> tuple[str, ...]:
    """The name that a person gave it, if one did, and the uid of its `kube-system`, if this operator may read that.

    Raises:
        ApiError: no answer; the caller reconciles again.
    """
    try:
        uid = text(part(cluster.get("Namespace", SYSTEM, "") or {}, "metadata"), "uid")
    except Rejected:  # rights in some namespaces only
        uid = None
    return tuple(each for each in (name, uid) if each)
