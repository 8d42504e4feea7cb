"""One contract for the API server in memory and a real one, through the same port: what the operator's simulation relies on.

`tests/operator/cluster/test_port.py` holds both to the port itself. Here it is how objects live and end: grace periods, finalizers, garbage,
generations, watches.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest
from cluster_bench import Bench

from sluice_lab.fakes.cluster import JournalExpired, MemoryCluster
from sluice_operator.cluster.client import ApiServer, connect
from sluice_operator.cluster.port import CONSUMER_KIND, PATHS, Cluster, Conflict, Exists

Json = dict[str, Any]
PLACES = [pytest.param("memory"), pytest.param("server", marks=pytest.mark.cluster)]
SPEC: Json = {
    "stream": {"name": "orders", "region": "eu-west-1"},
    "replicas": 2,
    "suspend": True,  # the operator of the real cluster may look at it, and makes nothing
    "pipeline": {"entrypoint": "orders.pipeline:process"},
}
HOLD = "example.org/hold"


@dataclass
class Place:
    """An API server and a namespace in it that no operator watches. `settle`: its controllers get the time they need."""

    cluster: Cluster
    namespace: str
    settle: Callable[[Callable[[], bool]], bool]
    watch: Callable[[str, str], list[tuple[str, str]]]

    def consumer(self, name: str = "orders", **meta: Any) -> Json:
        head = {"name": name, "namespace": self.namespace, **meta}
        return self.cluster.create({"apiVersion": "sluice.dev/v1alpha1", "kind": CONSUMER_KIND, "metadata": head, "spec": SPEC})

    def pod(self, name: str, **meta: Any) -> Json:
        head = {"name": name, "namespace": self.namespace, **meta}
        spec = {
            "containers": [{"name": "c", "image": "registry.invalid/none"}],
            "nodeSelector": {"none": "such"},
            "terminationGracePeriodSeconds": 60,
        }
        return self.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec})

    def get(self, kind: str, name: str) -> Json:
        found = self.cluster.get(kind, self.namespace, name)
        assert found is not None
        return found

    def gone(self, kind: str, name: str) -> bool:
        return self.cluster.get(kind, self.namespace, name) is None

    def delete(self, body: Json, grace: int | None = None) -> None:
        meta = body["metadata"]
        self.cluster.delete(body["kind"], self.namespace, meta["name"], meta["uid"], grace)

    def patch(self, body: Json, changes: Json) -> Json:
        return self.cluster.patch(body["kind"], self.namespace, body["metadata"]["name"], changes)


def owned_by(body: Json) -> list[Json]:
    meta = body["metadata"]
    return [{"apiVersion": body["apiVersion"], "kind": body["kind"], "name": meta["name"], "uid": meta["uid"], "controller": True}]


def memory_place() -> Place:
    memory = MemoryCluster(lambda: datetime.now(UTC).replace(microsecond=0))

    def settle(so: Callable[[], bool]) -> bool:
        memory.collect_garbage()
        return so()

    def watch(kind: str, version: str) -> list[tuple[str, str]]:
        return [(change.verb, change.body["metadata"]["name"]) for change in memory.watch(kind, int(version))]

    return Place(memory, "default", settle, watch)


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "memory":
        yield memory_place()
        return
    bench: Bench = request.getfixturevalue("bench")
    name = f"contract-{uuid.uuid4().hex[:8]}"
    bench.cluster.kubectl("create", "namespace", name)
    bench.until("the namespace's account", lambda: "default" in bench.cluster.kubectl("get", "serviceaccounts", f"--namespace={name}"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(bench.cluster.kubeconfig))
        api = connect()

    def settle(so: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + 60
        while not (found := so()) and time.monotonic() < deadline:
            time.sleep(0.5)
        return found

    def watch(kind: str, version: str) -> list[tuple[str, str]]:
        group, plural = PATHS[kind]
        query = urlencode({"watch": "true", "resourceVersion": version, "timeoutSeconds": 2})
        raw = bench.cluster.kubectl("get", "--raw", f"/{group}/namespaces/{name}/{plural}?{query}")
        events = [json.loads(line) for line in raw.splitlines() if line]
        if any(event["type"] == "ERROR" and event["object"].get("code") == 410 for event in events):
            raise JournalExpired(str(events))
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events]

    yield Place(ApiServer(api), name, settle, watch)
    bench.cluster.kubectl("delete", "namespace", name, "--wait=false")


def test_a_deletion_of_a_resource_counts_as_a_generation(place: Place) -> None:
    """So an observed generation of before is visibly old."""
    body = place.consumer(finalizers=[HOLD])
    place.delete(body)
    now = place.get(CONSUMER_KIND, "orders")
    assert now["metadata"]["generation"] == body["metadata"]["generation"] + 1
    assert "deletionTimestamp" in now["metadata"]
    place.patch(now, {"metadata": {"finalizers": None}})
    assert place.gone(CONSUMER_KIND, "orders")


def test_a_second_deletion_changes_nothing(place: Place) -> None:
    """No new version, so nothing wakes."""
    body = place.consumer(finalizers=[HOLD])
    place.delete(body)
    first = place.get(CONSUMER_KIND, "orders")["metadata"]
    place.delete(body)
    assert place.get(CONSUMER_KIND, "orders")["metadata"]["resourceVersion"] == first["resourceVersion"]
    place.patch(body, {"metadata": {"finalizers": None}})


def test_nobody_takes_hold_of_what_is_being_deleted(place: Place) -> None:
    body = place.consumer(finalizers=[HOLD])
    place.delete(body)
    with pytest.raises(Conflict):
        place.patch(body, {"metadata": {"finalizers": [HOLD, "sluice.dev/operator"]}})
    place.patch(body, {"metadata": {"finalizers": None}})


def test_a_name_is_taken_until_its_bearer_is_gone(place: Place) -> None:
    body = place.consumer(finalizers=[HOLD])
    place.delete(body)
    with pytest.raises(Exists):
        place.consumer()
    place.patch(body, {"metadata": {"finalizers": None}})
    assert place.consumer()["metadata"]["uid"] != body["metadata"]["uid"]


def test_a_pod_that_no_node_has_is_deleted_at_once(place: Place) -> None:
    place.delete(place.pod("p"))
    assert place.gone("Pod", "p")


def test_a_finalizer_holds_a_pod_that_is_deleted(place: Place) -> None:
    """As the Job controller holds those that it has not counted."""
    pod = place.pod("p", finalizers=[HOLD])
    place.delete(pod, 0)
    assert "deletionTimestamp" in place.get("Pod", "p")["metadata"]
    place.patch(pod, {"metadata": {"finalizers": None}})
    assert place.gone("Pod", "p")


def test_what_changes_nothing_is_no_write(place: Place) -> None:
    """Neither a patch nor a status: no version, no event, no loop."""
    body = place.consumer()
    body = place.cluster.replace_status({**body, "status": {"phase": "Pending"}})
    version = body["metadata"]["resourceVersion"]
    assert place.cluster.replace_status({**body, "status": {"phase": "Pending"}})["metadata"]["resourceVersion"] == version
    assert place.patch(body, {"spec": {"replicas": 2}})["metadata"]["resourceVersion"] == version


def test_a_status_cannot_be_written_without_a_version(place: Place) -> None:
    body = place.consumer()
    meta = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
    with pytest.raises(Exception, match="resourceVersion"):
        place.cluster.replace_status({**body, "metadata": meta, "status": {"phase": "Pending"}})


def test_a_status_of_an_earlier_bearer_of_the_name_is_refused(place: Place) -> None:
    old = place.consumer()
    place.delete(old)
    assert place.settle(lambda: place.gone(CONSUMER_KIND, "orders"))
    new = place.consumer()
    with pytest.raises(Conflict):
        place.cluster.replace_status({**old, "status": {"phase": "Pending"}})
    mixed = {**old["metadata"], "resourceVersion": new["metadata"]["resourceVersion"]}
    with pytest.raises(Conflict):
        place.cluster.replace_status({**old, "metadata": mixed, "status": {"phase": "Pending"}})


def test_a_status_write_changes_no_metadata(place: Place) -> None:
    body = place.consumer()
    changed = {**body, "metadata": {**body["metadata"], "annotations": {"a": "b"}}, "status": {"phase": "Pending"}}
    place.cluster.replace_status(changed)
    assert "a" not in (place.get(CONSUMER_KIND, "orders")["metadata"].get("annotations") or {})


def test_what_an_owner_had_goes_with_it(place: Place) -> None:
    owner = place.consumer()
    place.pod("child", ownerReferences=owned_by(owner))
    stranger = {**owner, "metadata": {**owner["metadata"], "uid": str(uuid.uuid4())}}
    place.pod("orphan", ownerReferences=owned_by(stranger))
    place.pod("nobodys")
    assert place.settle(lambda: place.gone("Pod", "orphan"))
    assert not place.gone("Pod", "child")
    place.delete(owner)
    assert place.settle(lambda: place.gone("Pod", "child"))
    assert not place.gone("Pod", "nobodys")


def test_a_watch_tells_what_happened_since_a_version_in_order(place: Place) -> None:
    first = place.pod("a")
    place.pod("b")
    place.patch(first, {"metadata": {"annotations": {"x": "y"}}})
    place.delete(first)
    told = [entry for entry in place.watch("Pod", first["metadata"]["resourceVersion"]) if entry[1] in {"a", "b"}]
    told = [entry for i, entry in enumerate(told) if entry not in told[:i]]  # the scheduler says that no node fits, in changes of its own
    assert next(entry for entry in told if entry[1] == "b") == ("ADDED", "b")
    assert [entry for entry in told if entry[1] == "a"] == [("MODIFIED", "a"), ("DELETED", "a")]


def test_a_watch_of_long_ago_is_told_that_it_missed_something() -> None:
    """The in-memory fake forgets when it is told to; a real server after minutes, so this half is the in-memory fake's only."""
    memory = MemoryCluster(lambda: datetime.now(UTC))
    memory.create({"kind": "Pod", "metadata": {"namespace": "default", "name": "p"}})
    memory.compact()
    with pytest.raises(JournalExpired):
        memory.watch("Pod", 0)
    assert memory.watch("Pod", memory.version) == ()
