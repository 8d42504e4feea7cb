"""Which of the pods and Jobs that carry a resource's label are its own. Pure.

Labels prove nothing: a copy of a driver keeps them, and any pod may have them. What decides is the controller that an object names, or the uid that
the status names. The uid counts for an object with a name and an annotation of ours only, because somebody else may have written the status. A driver
of an earlier resource of this name counts too: two drivers never run side by side.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sluice_operator.state.objects import Job, Pod

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice_operator.state.objects import Observed, Resource
    from sluice_operator.state.status import Status

Item = TypeVar("Item", Pod, Job)


def own(resource: Resource, status: Status, seen: Observed) -> Observed:
    """What was seen, without what is not the resource's own. Its own objects that lost their owner have it again.

    A driver whose containers have ended and that another program's finalizer keeps from being deleted is gone. So are its executors that have ended.
    Nothing runs in them any more.
    """
    over = {pod.uid for pod in seen.drivers if pod.finished and pod.deleting and pod.held}
    left = tuple(pod for pod in seen.executors if not (pod.finished and (pod.held or pod.owner in over)))
    drivers = tuple(_adopted(resource, pod) for pod in seen.drivers if _is_driver(resource, status, pod))
    jobs = tuple(_adopted(resource, job) for job in seen.jobs if _is_job(resource, status, job))
    return replace(
        seen,
        drivers=tuple(pod for pod in drivers if pod.uid not in over),
        jobs=jobs,
        executors=_children(
            left,
            Parents("Pod", rf"{re.escape(resource.driver_name(0)[:-1])}\d+", seen.drivers, drivers),
        ),
        migrators=_children(seen.migrators, Parents("Job", _job_names(resource), seen.jobs, jobs)),
    )


class Parents(NamedTuple):
    """Drivers or Jobs: the pattern of the resource's names, all that were seen, and the resource's own of these."""

    kind: str
    names: str
    seen: Iterable[Pod | Job]
    ours: Iterable[Pod | Job]


def _children(pods: tuple[Pod, ...], parents: Parents) -> tuple[Pod, ...]:
    """The pods of the resource's drivers or Jobs. Of one that is gone, the name alone decides."""
    ours = {item.uid for item in parents.ours}
    strangers, name = {item.uid for item in parents.seen} - ours, re.compile(parents.names)

    def is_child(pod: Pod) -> bool:
        return pod.owner in ours or (pod.owner_kind == parents.kind and pod.owner not in strangers and name.fullmatch(pod.owner_name) is not None)

    return tuple(pod for pod in pods if is_child(pod))


def _is_driver(resource: Resource, status: Status, pod: Pod) -> bool:
    driver, left, standby = status.driver, status.driver.leaving, status.standby
    formed = pod.attempt > 0 and pod.name == resource.driver_name(pod.attempt)
    if formed and pod.spec_hash is not None and pod.uid in {known.uid for known in (driver, left, standby) if known}:
        return True
    return _is_controlled(resource, pod) or _is_orphan(
        resource, pod, made=formed and pod.attempt <= max(driver.attempt, standby.attempt if standby else 0)
    )


def _is_job(resource: Resource, status: Status, job: Job) -> bool:
    made = re.fullmatch(_job_names(resource), job.name) is not None
    if made and job.spec_hash is not None and job.uid in {known.uid for known in (status.migration, status.position) if known}:
        return True
    return _is_controlled(resource, job) or _is_orphan(resource, job, made=made)


def _job_names(resource: Resource) -> str:
    return rf"{re.escape(resource.name)}-(migrate|reset)-[0-9a-f]+-\d+"


def _is_controlled(resource: Resource, item: Pod | Job) -> bool:
    return item.owner_kind == resource.kind and (item.owner == resource.uid or item.owner_name == resource.name)


def _is_orphan(resource: Resource, item: Pod | Job, *, made: bool) -> bool:
    """Without an owner, and `made` under the operator's names: `kubectl delete --cascade=orphan` removes the owner of a deleted resource."""
    return resource.deleting and item.owner is None and made and item.spec_hash is not None


def _adopted(resource: Resource, item: Item) -> Item:
    """The item with this resource as its owner, if its uid or name alone made it the resource's."""
    return item if _is_controlled(resource, item) else replace(item, owner=resource.uid)
