"""The API server in memory: it refuses what the real one refuses, and can die or lose a reply after any write.

For tests and simulations; ships beside the port so that both stay the same. What it has: resourceVersion conflicts,
generations, the status subresource, labels, uid preconditions, finalizers, grace periods, owner garbage collection.
What it has not: schemas, defaulting, watches. `kubelet` and controllers are the test's.
"""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any

from sluice_operator.cluster import CONSUMER_KIND, Conflict, Exists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from sluice_operator.cluster import Json

Name = tuple[str, str, str]


class Twin:
    """Adapter of `Cluster`. `after_write` is called with (verb, kind) once a write has happened; it may raise."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._objects: dict[Name, Json] = {}
        self._versions = itertools.count(1)
        self.after_write: Callable[[str, str], None] = lambda _verb, _kind: None

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """See Cluster."""
        return copy.deepcopy(self._objects.get((kind, namespace, name)))

    def list(self, kind: str, namespace: str, labels: dict[str, str]) -> list[Json]:
        """See Cluster."""
        return [copy.deepcopy(body) for body in self.all(kind) if body["metadata"]["namespace"] == namespace and _has(body, labels)]

    def all(self, kind: str) -> Iterator[Json]:
        """Every object of the kind, as stored: for controllers and assertions of a test."""
        return (body for (of, _, _), body in sorted(self._objects.items()) if of == kind)

    def create(self, body: Json) -> Json:
        """See Cluster."""
        body = copy.deepcopy(body)
        meta = body["metadata"]
        name = (body["kind"], meta["namespace"], meta["name"])
        if name in self._objects:
            raise Exists(f"{body['kind']} {meta['name']} already exists")
        number = next(self._versions)
        meta |= {"uid": f"uid-{number}", "resourceVersion": str(number), "generation": 1, "creationTimestamp": self._stamp()}
        body.pop("status", None)
        self._objects[name] = body
        return self._wrote("create", body)

    def replace_status(self, body: Json) -> Json:
        """See Cluster."""
        stored = self._stored(body["kind"], body["metadata"])
        stored["status"] = copy.deepcopy(body.get("status") or {})
        return self._changed("status", stored)

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        """See Cluster."""
        meta = {**changes.get("metadata", {}), "namespace": namespace, "name": name}
        stored = self._stored(kind, meta)
        merged = _merge(stored, {key: value for key, value in changes.items() if key != "status"})
        merged["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        if merged == stored:
            return copy.deepcopy(stored)
        if kind == CONSUMER_KIND and merged.get("spec") != stored.get("spec"):
            merged["metadata"]["generation"] += 1
        self._objects[kind, namespace, name] = merged
        return self._changed("patch", merged)

    def delete(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        """See Cluster. A pod stays for its grace period: `finish_deletion` is the kubelet's part."""
        stored = self._objects.get((kind, namespace, name))
        if stored is None:
            return
        if stored["metadata"]["uid"] != uid:
            raise Conflict(f"Precondition failed: UID in precondition: {uid}")
        period = grace if grace is not None else stored.get("spec", {}).get("terminationGracePeriodSeconds", 30)
        lingers = kind == "Pod" and period > 0 and stored.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
        if lingers or stored["metadata"].get("finalizers"):
            stored["metadata"].setdefault("deletionTimestamp", self._stamp(period if kind == "Pod" else 0))
            self._changed("delete", stored)
        else:
            self.finish_deletion(stored)
            self.after_write("delete", kind)

    def set_status(self, kind: str, namespace: str, name: str, status: Json) -> None:
        """A controller's or the kubelet's write; no faults there."""
        stored = self._objects[kind, namespace, name]
        stored["status"] = {**stored.get("status", {}), **status}
        stored["metadata"]["resourceVersion"] = str(next(self._versions))

    def finish_deletion(self, body: Json) -> None:
        """The object is gone for good."""
        meta = body["metadata"]
        self._objects.pop((body["kind"], meta["namespace"], meta["name"]), None)

    def collect_garbage(self) -> None:
        """Objects whose owners are all gone are deleted, as the real collector does some time later."""
        alive = {body["metadata"]["uid"] for body in self._objects.values()}
        for body in list(self._objects.values()):
            owners = [ref["uid"] for ref in body["metadata"].get("ownerReferences", ())]
            if owners and not alive.intersection(owners) and "deletionTimestamp" not in body["metadata"]:
                self._collect(body)

    def _collect(self, body: Json) -> None:
        told, self.after_write = self.after_write, lambda _verb, _kind: None
        meta = body["metadata"]
        self.delete(body["kind"], meta["namespace"], meta["name"], meta["uid"])
        self.after_write = told

    def _stored(self, kind: str, meta: Json) -> Json:
        stored = self._objects.get((kind, meta["namespace"], meta["name"]))
        if stored is None:
            raise Conflict(f"{kind} {meta['name']} not found")
        for condition in ("uid", "resourceVersion"):
            if meta.get(condition, stored["metadata"][condition]) != stored["metadata"][condition]:
                raise Conflict(f"{kind} {meta['name']} has another {condition}")
        return stored

    def _changed(self, verb: str, stored: Json) -> Json:
        stored["metadata"]["resourceVersion"] = str(next(self._versions))
        if "deletionTimestamp" in stored["metadata"] and stored["kind"] != "Pod" and not stored["metadata"].get("finalizers"):
            self.finish_deletion(stored)
        return self._wrote(verb, stored)

    def _wrote(self, verb: str, body: Json) -> Json:
        answer = copy.deepcopy(body)
        self.after_write(verb, body["kind"])
        return answer

    def _stamp(self, later: int = 0) -> str:
        return datetime_text(self._clock(), later)


def datetime_text(moment: datetime, later: int = 0) -> str:
    """RFC 3339, as the API server writes it; `later` in seconds."""
    return moment.fromtimestamp(moment.timestamp() + later, moment.tzinfo).isoformat().replace("+00:00", "Z")


def _has(body: Json, labels: dict[str, str]) -> bool:
    present = body["metadata"].get("labels", {})
    return all(present.get(key) == value for key, value in labels.items())


def _merge(into: Any, changes: Any) -> Any:
    """RFC 7386."""
    if not isinstance(changes, dict) or not isinstance(into, dict):
        return copy.deepcopy(changes)
    merged = {key: value for key, value in into.items() if changes.get(key, value) is not None}
    return merged | {key: _merge(into.get(key, {}), value) for key, value in changes.items() if value is not None}
