"""What a person may do with a KinesisConsumer, and what each action writes: the actions of Argo CD (docs/gitops.md, "Actions"), and `force`. Pure.

Each patch is a merge patch with the `metadata.resourceVersion` that was read as its condition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from sluice_kubectl.views.consumer import ConsumerView, consumer
from sluice_kubectl.views.objects import pool_of
from sluice_kubectl.views.part import ObjectPart
from sluice_operator.names import GROUP

Json = dict[str, Any]
TRIED_AGAIN = {"Failed", "SourceActive", "Lost"}  # states of a migration that a person may have tried again
MOVED_AGAIN = {"Refused", "Held", "Lost", "Failing"}  # and those of a move of positions


class NotOffered(Exception):
    """The action makes no sense now; the message says why, and what to do next. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One patch, and what it brings about. None: it is so already."""

    patch: Json | None
    message: str


def pause(body: Json, _now: str) -> Intent:
    """The operator keeps updating the status but changes nothing. The driver keeps running."""
    view = _living(body)
    if view.paused:
        return Intent(None, f"{view.name} is paused already")
    return _annotated(body, "paused", "true", f"{view.name} is paused: its driver keeps running, the operator changes nothing; undo it with resume")


def drain(body: Json, _now: str) -> Intent:
    """The driver finishes its batch, then nothing runs. Positions stay in the checkpoint table."""
    view = _living(body)
    if view.suspended:
        return Intent(None, f"{view.name} is suspended already")
    message = f"{view.name} drains: its driver finishes its batch, then nothing runs; undo it with resume"
    return Intent(_conditional(body, {"spec": {"suspend": True}}), f"{message}{_waits(view)}")


def resume(body: Json, _now: str) -> Intent:
    """Undoes pause and drain."""
    view = _living(body)
    if not (view.paused or view.suspended):
        return Intent(None, f"{view.name} is neither paused nor suspended")
    patch = _conditional(body, {"spec": {"suspend": None}})
    patch["metadata"]["annotations"] = {f"{GROUP}/paused": None}
    return Intent(patch, f"{view.name} continues")


def restart(body: Json, now: str) -> Intent:
    """The driver drains, then the next one starts."""
    view = _controlled(body, "restart")
    if not view.driver.attempt:
        raise NotOffered(f"{view.name} has had no driver yet: there is nothing to restart; next: status {view.name} shows what it waits for")
    if view.desired == 0:
        raise NotOffered(f"{view.name} is scaled to zero: there is nothing to restart; next: kubectl scale kc {view.name} --replicas=1")
    if view.phase == "Completed":
        raise NotOffered(f"{view.name} has reached spec.until, so a restart would do nothing; next: edit spec.until of kc {view.name}, or remove it")
    return _annotated(body, "restart", now, f"{view.name} restarts: driver {view.driver.attempt} finishes its batch, then the next driver starts")


def retry(body: Json, now: str) -> Intent:
    """A migration, or a move of positions, that failed or waits is tried again."""
    view = _controlled(body, "retry")
    if view.position is not None and view.position.wanted and view.position.state in MOVED_AGAIN:
        return _annotated(body, "retry", now, f"{view.name} retries the move {view.position.id} of its positions")
    if view.migration not in TRIED_AGAIN:
        state = f"its migration is {view.migration}" if view.migration else "it has no migration"
        raise NotOffered(f"{view.name} has nothing to retry: {state}; next: for a driver that failed, restart {view.name}")
    return _annotated(body, "retry", now, f"{view.name} retries its migration")


ACTIONS: dict[str, Callable[[Json, str], Intent]] = {"pause": pause, "drain": drain, "resume": resume, "restart": restart, "retry": retry}


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The driver pod that `force` gives up, or the pod of a pool that the driver runs in."""

    pod: str
    uid: str
    pool: str | None = None


def late_driver(body: Json, hanging: Collection[str] = ()) -> GivenUp:
    """The pod that a force would be about: the one that is leaving, else a standby that hangs, else the present one.

    `hanging`: uids of pods that were asked to stop and are still there.

    Raises:
        NotOffered: there is no such pod, or nobody has seen its uid yet.
    """
    view = _living(body, also_deleting=True)
    pod, uid = (view.driver.leaving, view.driver.leaving_uid) if view.driver.leaving else (view.driver.pod, view.driver.uid)
    if not view.driver.leaving and view.standby and view.standby.uid in hanging and uid not in hanging:
        pod, uid = view.standby.pod, view.standby.uid
    if not pod or not uid:
        raise NotOffered(f"{view.name} has no driver pod that could be removed; next: status {view.name}")
    host, _, seat = uid.partition("/")
    if seat and view.driver.host:
        return GivenUp(view.driver.host, host, pool_of(view.driver.host))
    return GivenUp(pod, uid)


def force_pool(body: Json, agreed: GivenUp) -> Intent:
    """The pod of the pool is removed with its executors, without waiting for its node. A uid names no other pod, whatever has happened since."""
    message = f"{agreed.pod} is being removed, with its executors, without waiting; the members of the pool {agreed.pool} start again in its next pod"
    return _annotated(body, "force", agreed.uid, message)


def force(body: Json, agreed: GivenUp) -> Intent:
    """The pod is removed with its executors, without waiting for its node.

    Raises:
        NotOffered: it is no longer the pod that the person agreed to give up.
    """
    if (late := late_driver(body, (agreed.uid,))) != agreed:
        raise NotOffered(f"the driver is now {late.pod} with uid {late.uid}, and you agreed to remove {agreed.uid}; next: run force again")
    return _annotated(body, "force", agreed.uid, f"{agreed.pod} is being removed, with its executors, without waiting")


def _living(body: Json, *, also_deleting: bool = False) -> ConsumerView:
    view = consumer(body)
    if view.deleting and not also_deleting:
        raise NotOffered(f"{view.name} is being deleted; next: wait, or see status {view.name} for what it waits for")
    return view


def _controlled(body: Json, action: str) -> ConsumerView:
    view = _living(body)
    if view.paused or view.suspended:
        state = "paused" if view.paused else "suspended"
        raise NotOffered(f"{view.name} is {state}, so a {action} would do nothing; next: resume {view.name}")
    return view


def _waits(view: ConsumerView) -> str:
    return "; it is paused, so nothing happens before resume, which undoes both" if view.paused else ""


def _annotated(body: Json, note: str, value: str, message: str) -> Intent:
    patch = _conditional(body, {})
    patch["metadata"]["annotations"] = {f"{GROUP}/{note}": value}
    return Intent(patch, message)


def _conditional(body: Json, changes: Json) -> Json:
    return {"metadata": {"resourceVersion": required(ObjectPart.whole(body).part("metadata"), "resourceVersion")}, **changes}


def required(of: ObjectPart, key: str) -> str:
    """A text without which nothing can be written.

    Raises:
        NotOffered: there is none.
    """
    if value := of.text(key):
        return value
    raise NotOffered(f"{of.path}.{key} cannot be read, so nothing was written; next: look at it with kubectl get -o yaml")
