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
    one = _living(body)
    if one.paused:
        return Intent(None, f"{one.name} is paused already")
    return _annotated(body, "paused", "true", f"{one.name} is paused: its driver keeps running, the operator changes nothing; undo it with resume")


def drain(body: Json, _now: str) -> Intent:
    """The driver finishes its batch, then nothing runs. Positions stay in the checkpoint table."""
    one = _living(body)
    if one.suspended:
        return Intent(None, f"{one.name} is suspended already")
    message = f"{one.name} drains: its driver finishes its batch, then nothing runs; undo it with resume"
    return Intent(_conditional(body, {"spec": {"suspend": True}}), f"{message}{_waits(one)}")


def resume(body: Json, _now: str) -> Intent:
    """Undoes pause and drain."""
    one = _living(body)
    if not (one.paused or one.suspended):
        return Intent(None, f"{one.name} is neither paused nor suspended")
    patch = _conditional(body, {"spec": {"suspend": None}})
    patch["metadata"]["annotations"] = {f"{GROUP}/paused": None}
    return Intent(patch, f"{one.name} continues")


def restart(body: Json, now: str) -> Intent:
    """The driver drains, then the next one starts."""
    one = _controlled(body, "restart")
    if not one.driver.attempt:
        raise NotOffered(f"{one.name} has had no driver yet: there is nothing to restart; next: status {one.name} shows what it waits for")
    if one.desired == 0:
        raise NotOffered(f"{one.name} is scaled to zero: there is nothing to restart; next: kubectl scale kc {one.name} --replicas=1")
    if one.phase == "Completed":
        raise NotOffered(f"{one.name} has reached spec.until, so a restart would do nothing; next: edit spec.until of kc {one.name}, or remove it")
    return _annotated(body, "restart", now, f"{one.name} restarts: driver {one.driver.attempt} finishes its batch, then the next driver starts")


def retry(body: Json, now: str) -> Intent:
    """A migration, or a move of positions, that failed or waits is tried again."""
    one = _controlled(body, "retry")
    if one.position is not None and one.position.wanted and one.position.state in MOVED_AGAIN:
        return _annotated(body, "retry", now, f"{one.name} retries the move {one.position.id} of its positions")
    if one.migration not in TRIED_AGAIN:
        state = f"its migration is {one.migration}" if one.migration else "it has no migration"
        raise NotOffered(f"{one.name} has nothing to retry: {state}; next: for a driver that failed, restart {one.name}")
    return _annotated(body, "retry", now, f"{one.name} retries its migration")


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
    one = _living(body, also_deleting=True)
    pod, uid = (one.driver.leaving, one.driver.leaving_uid) if one.driver.leaving else (one.driver.pod, one.driver.uid)
    if not one.driver.leaving and one.standby and one.standby.uid in hanging and uid not in hanging:
        pod, uid = one.standby.pod, one.standby.uid
    if not pod or not uid:
        raise NotOffered(f"{one.name} has no driver pod that could be removed; next: status {one.name}")
    host, _, seat = uid.partition("/")
    if seat and one.driver.host:
        return GivenUp(one.driver.host, host, pool_of(one.driver.host))
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
    one = consumer(body)
    if one.deleting and not also_deleting:
        raise NotOffered(f"{one.name} is being deleted; next: wait, or see status {one.name} for what it waits for")
    return one


def _controlled(body: Json, action: str) -> ConsumerView:
    one = _living(body)
    if one.paused or one.suspended:
        state = "paused" if one.paused else "suspended"
        raise NotOffered(f"{one.name} is {state}, so a {action} would do nothing; next: resume {one.name}")
    return one


def _waits(one: ConsumerView) -> str:
    return "; it is paused, so nothing happens before resume, which undoes both" if one.paused else ""


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
    if found := of.text(key):
        return found
    raise NotOffered(f"{of.path}.{key} cannot be read, so nothing was written; next: look at it with kubectl get -o yaml")
