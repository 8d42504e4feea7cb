"""The API server in memory: it refuses what the real one refuses.

For tests and simulations. One contract suite tests it and the real client. It has
resourceVersions and conflicts, generations, the status subresource, labels, uid preconditions, finalizers, grace periods, owner garbage
collection, watches that expire. It has no schemas and no defaulting. Controllers, kubelets and faults are the test's.

Stored objects are replaced, never changed: the journal keeps them as they were.
"""

from __future__ import annotations

import json
import marshal
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sluice_operator.cluster.port import CONSUMER_KIND, Conflict, Exists, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from sluice_operator.cluster.port import Json, Labels

Name = tuple[str, str, str]
GRACE = 30  # seconds; Kubernetes' default for a pod
FINISHED = {"Succeeded", "Failed"}
FIXED = ("uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


class JournalExpired(Exception):
    """410: the server no longer keeps the changes since this version. List again."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """An entry of the journal; `verb` is ADDED, MODIFIED or DELETED, as in a watch event."""

    version: int
    verb: str
    body: Json


class MemoryCluster:
    """Adapter of `Cluster`.

    `after_write` is called with (verb, kind) after each write through the port; it may raise. `admission` raises Rejected for an object that may
    not be created, by any caller.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._objects: dict[Name, Json] = {}
        self._compacted = 0
        self.version = 0
        self.journal: list[JournalEntry] = []
        self.after_write: Callable[[str, str], None] = lambda _verb, _kind: None
        self.admission: Callable[[Json], None] = lambda _body: None

    # the port

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        stored = self.stored(kind, namespace, name)
        return copied(stored) if stored else None

    def list(self, kind: str, namespace: str, labels: Labels) -> list[Json]:
        return [copied(body) for body in self.all(kind) if namespace in ("", body["metadata"]["namespace"]) and _has(body, labels)]

    def create(self, body: Json) -> Json:
        body = _received(body)
        meta, name = body["metadata"], _name(body)
        if name in self._objects:
            raise Exists(f"{body['kind']} {meta['name']} already exists")
        self.admission(body)
        meta |= {"uid": f"uid-{self.version + 1}", "generation": 1, "creationTimestamp": self._stamp()}
        body.pop("status", None)
        return self._answer("create", self._store("ADDED", body))

    def check(self, body: Json) -> None:
        self.admission(body)

    def replace_status(self, body: Json) -> Json:
        if "resourceVersion" not in body["metadata"]:
            raise Rejected("Invalid", "metadata.resourceVersion: must be specified for an update")
        stored = self._stored(body["kind"], body["metadata"])
        return self._answer("status", self._replace(stored, {**stored, "status": _received(body.get("status") or {})}))

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        stored = self._stored(kind, {**changes.get("metadata", {}), "namespace": namespace, "name": name})
        return self._answer("patch", self._edit(stored, {key: value for key, value in changes.items() if key != "status"}))

    def delete(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        """See Cluster. A pod on a node stays for its grace period: `finish_deletion` is the kubelet's part."""
        self.remove(kind, namespace, name, uid, grace)
        self.after_write("delete", kind)

    # what a watch sees

    def watch(self, kind: str, since: int) -> tuple[JournalEntry, ...]:
        """Changes of that kind later than the version `since`.

        Raises:
            Expired: some of them are forgotten.
        """
        if since < self._compacted:
            raise JournalExpired(f"too old resource version: {since} ({self._compacted})")
        newer = self.journal[max(0, since - self._compacted) :]
        return tuple(change for change in newer if change.body["kind"] == kind)

    def compact(self) -> None:
        """Forget the journal, as etcd does after some minutes."""
        self._compacted, self.journal = self.version, []

    # what controllers and kubelets do

    def stored(self, kind: str, namespace: str, name: str) -> Json | None:
        """One object as stored, if it exists; not to be changed."""
        return self._objects.get((kind, namespace, name))

    def all(self, kind: str) -> Iterator[Json]:
        """Every object of the kind, as stored, by name; not to be changed."""
        return iter([body for _, body in sorted(item for item in self._objects.items() if item[0][0] == kind)])

    def set_status(self, kind: str, namespace: str, name: str, status: Json) -> None:
        """Top-level fields of the status, by their owner."""
        stored = self._objects[kind, namespace, name]
        self._replace(stored, {**stored, "status": {**stored.get("status", {}), **_received(status)}})

    def edit(self, body: Json, changes: Json) -> None:
        """A merge patch by a controller, if the object is still there."""
        stored = self._objects.get(_name(body))
        if stored is not None and stored["metadata"]["uid"] == body["metadata"]["uid"]:
            self._edit(stored, changes)

    def remove(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        """A deletion by anybody else: a user, a kubelet (grace 0), a controller."""
        stored = self._objects.get((kind, namespace, name))
        if stored is None:
            return
        if stored["metadata"]["uid"] != uid:
            raise Conflict(f"Precondition failed: UID in precondition: {uid}")
        period, left = _period(stored, grace), stored["metadata"].get("deletionGracePeriodSeconds")
        if left is not None and left <= period:
            return
        meta = {**stored["metadata"], "deletionTimestamp": self._stamp(period), "deletionGracePeriodSeconds": period}
        if left is None:
            meta["generation"] += 1
        self._store("MODIFIED", {**stored, "metadata": meta})

    def finish_deletion(self, body: Json) -> None:
        """The object is gone for good, whatever held it."""
        stored = self._objects.pop(_name(body), None)
        if stored is not None:
            self._tell("DELETED", stored)

    def collect_garbage(self) -> None:
        """Objects whose owners are all gone are deleted, as the real collector does some time later."""
        alive = {body["metadata"]["uid"] for body in self._objects.values()}
        for body in list(self._objects.values()):
            meta = body["metadata"]
            owners = [ref["uid"] for ref in meta.get("ownerReferences") or ()]
            if owners and not alive.intersection(owners) and "deletionTimestamp" not in meta:
                self.remove(body["kind"], meta["namespace"], meta["name"], meta["uid"])

    # storage

    def _stored(self, kind: str, meta: Json) -> Json:
        stored = self._objects.get((kind, meta["namespace"], meta["name"]))
        if stored is None:
            raise Conflict(f"{kind} {meta['name']} not found")
        for condition in ("uid", "resourceVersion"):
            if meta.get(condition, stored["metadata"][condition]) != stored["metadata"][condition]:
                raise Conflict(f"{kind} {meta['name']} has another {condition}")
        return stored

    def _edit(self, stored: Json, changes: Json) -> Json:
        merged: Json = _merge(stored, changes)
        was = stored["metadata"]
        merged["metadata"] = {**merged["metadata"], **{key: was[key] for key in (*FIXED, "resourceVersion") if key in was}}
        new = set(merged["metadata"].get("finalizers") or ()) - set(was.get("finalizers") or ())
        if "deletionTimestamp" in was and new:
            raise Conflict(f"no new finalizers can be added if the object is being deleted: {new}")
        if merged["kind"] == CONSUMER_KIND and merged.get("spec") != stored.get("spec"):
            merged["metadata"]["generation"] += 1
        return self._replace(stored, merged)

    def _replace(self, stored: Json, new: Json) -> Json:
        """What changes nothing is not a write."""
        return stored if new == stored else self._store("MODIFIED", {**new, "metadata": {**new["metadata"]}})

    def _store(self, verb: str, body: Json) -> Json:
        meta = body["metadata"]
        if meta.get("deletionGracePeriodSeconds") == 0 and not meta.get("finalizers"):
            self._objects.pop(_name(body), None)
            return self._tell("DELETED", body)
        self._objects[_name(body)] = body
        return self._tell(verb, body)

    def _tell(self, verb: str, body: Json) -> Json:
        self.version += 1
        if verb == "DELETED":
            body = {**body, "metadata": {**body["metadata"]}}
        body["metadata"]["resourceVersion"] = str(self.version)
        self.journal.append(JournalEntry(self.version, verb, body))
        return body

    def _answer(self, verb: str, body: Json) -> Json:
        answer: Json = copied(body)
        self.after_write(verb, body["kind"])
        return answer

    def _stamp(self, later: int = 0) -> str:
        return datetime_text(self._clock(), later)


def datetime_text(moment: datetime, later: int = 0) -> str:
    """RFC 3339, as the API server writes it; `later` in seconds."""
    return (moment + timedelta(seconds=later)).isoformat().replace("+00:00", "Z")


def copied(body: Any) -> Any:
    """A deep copy of what is stored. Version 2 of the format shares no part of it."""
    return marshal.loads(marshal.dumps(body, 2))  # noqa: S302 - it is ours


def _received(body: Any) -> Any:
    """What comes of it over the wire: JSON, without our enums."""
    return json.loads(json.dumps(body))


def _name(body: Json) -> Name:
    return body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]


def _period(body: Json, grace: int | None) -> int:
    """Seconds until it must be gone; only a pod that a node runs takes any."""
    if body["kind"] != "Pod" or not body.get("spec", {}).get("nodeName") or body.get("status", {}).get("phase") in FINISHED:
        return 0
    asked = grace if grace is not None else body["spec"].get("terminationGracePeriodSeconds")
    return GRACE if asked is None else int(asked)


def _has(body: Json, labels: Labels) -> bool:
    present = body["metadata"].get("labels") or {}
    return all(key in present if value is None else present.get(key) == value for key, value in labels.items())


def _merge(into: Any, changes: Any) -> Any:
    """RFC 7386."""
    if not isinstance(changes, dict):
        return _received(changes)
    base = into if isinstance(into, dict) else {}
    merged = {key: value for key, value in base.items() if changes.get(key, value) is not None}
    return merged | {key: _merge(base.get(key), value) for key, value in changes.items() if value is not None}
