"""One input stops nobody else: objects of strangers on a real API server, and the real process of the operator, which sees to all others."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from crd_server import install
from executors_kubelet import Admin
from odd_values import deep
from patience import PATIENCE
from simulated_cluster import SPEC

from sluice_lab import places
from sluice_lab.machine import apiserver, processes
from sluice_lab.machine.listening import LOOPBACK, free_port

pytestmark = pytest.mark.built

Json = dict[str, Any]
CONSUMERS = "apis/sluice.dev/v1alpha1/namespaces/{}/kinesisconsumers"
SPECS: dict[str, Json] = {
    "args": {"pipeline": {**SPEC["pipeline"], "args": deep(1_200)}},
    "template": {"driver": {"podTemplate": {"spec": {"affinity": deep(2_000)}}}},
    "shallow": {"pipeline": {**SPEC["pipeline"], "args": deep(990)}},
    "amount": {"driver": {"resources": {"requests": {"cpu": "1e99"}}}},
    "bytes": {"pipeline": {**SPEC["pipeline"], "args": {"a": [[]] * 60_000}}},
    "types": {"driver": {"podTemplate": {"spec": {"containers": [{"name": "driver", "env": 5}]}}}},
}


@pytest.fixture(scope="module", autouse=True)
def stack() -> Iterator[None]:
    """Of this process, which is no operator: json gives up at 1,000 levels otherwise."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    yield
    sys.setrecursionlimit(limit)


@pytest.fixture(scope="module")
def server(stack: None) -> Iterator[apiserver.LocalApiServer]:  # noqa: ARG001 - it comes first
    with apiserver.running(places.work(), ("admin", "operator")) as server:
        admin = Admin(server)
        install(admin.call)
        admin.call("POST", "api/v1/namespaces", {"metadata": {"name": "theirs"}})
        make(admin, "theirs", "before", SPECS["args"])
        yield server


@pytest.fixture(scope="module")
def operator(server: apiserver.LocalApiServer) -> Iterator[processes.Running]:
    environment = {"KUBECONFIG": str(server.kubeconfig("operator")), "SLUICE_PORT": str(free_port(LOOPBACK))}
    running = processes.start(places.work(), processes.Program("operator-strangers", (sys.executable, "-m", "sluice_operator"), environment))
    yield running
    running.stop()


@pytest.fixture
def admin(server: apiserver.LocalApiServer, operator: processes.Running) -> Iterator[Admin]:
    """Whatever a test did, the process runs, and sees to somebody else's resource."""
    found = Admin(server)
    yield found
    make(found, "default", "bystander", {"suspend": True})
    assert seen(found, "default", "bystander"), processes.tail(operator.log.read_text(errors="replace"), 20)
    assert operator.alive()
    remove(found, "default", "bystander")


def make(admin: Admin, namespace: str, name: str, change: Json) -> None:
    body = {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": {"name": name}, "spec": {**SPEC, **change}}
    admin.call("POST", CONSUMERS.format(namespace), body)


def get(admin: Admin, namespace: str, name: str) -> Json:
    return admin.call("GET", f"{CONSUMERS.format(namespace)}/{name}")


def until(holds: Callable[[], bool]) -> bool:
    """Within two minutes: after six failures a pass is a minute away."""
    return bool(processes.poll(holds, PATIENCE))


def seen(admin: Admin, namespace: str, name: str) -> bool:
    def taken_in() -> bool:
        body = get(admin, namespace, name)
        return bool(body) and body.get("status", {}).get("observedGeneration") == body["metadata"]["generation"]

    return until(taken_in)


def condition(admin: Admin, namespace: str, name: str, kind: str) -> Json:
    conditions = get(admin, namespace, name).get("status", {}).get("conditions", ())
    return next((item for item in conditions if item["type"] == kind), {})


def remove(admin: Admin, namespace: str, name: str) -> None:
    admin.call("DELETE", f"{CONSUMERS.format(namespace)}/{name}")
    assert until(lambda: get(admin, namespace, name) == {})


def test_an_object_that_was_there_before_the_operator_is_refused_by_its_field(admin: Admin) -> None:
    """1,200 levels: no JSON parser of the process takes them, neither in the list, nor in the watch, nor in a read."""
    assert seen(admin, "theirs", "before")
    refused = condition(admin, "theirs", "before", "SpecValid")
    assert (refused["status"], refused["message"].partition(":")[0]) == ("False", "spec.pipeline.args.a.a")
    admin.call("PATCH", f"{CONSUMERS.format('theirs')}/before", {"spec": {"pipeline": {"args": None}, "suspend": True}})
    assert until(lambda: condition(admin, "theirs", "before", "SpecValid").get("status") == "True")
    remove(admin, "theirs", "before")


def test_a_resource_of_too_many_labels_is_seen_carried_out_and_deleted(admin: Admin) -> None:
    """The audit of the watches lists it as well. A watch that cannot show it would look stuck, and the operator be restarted for everybody."""
    labels = {f"{'p' * 60}.{'q' * 60}.{'r' * 60}.s{number}/{'k' * 60}": "v" * 63 for number in range(1_700)}
    make(admin, "theirs", "labels", {"suspend": True})
    admin.call("PATCH", f"{CONSUMERS.format('theirs')}/labels", {"metadata": {"labels": labels, "annotations": {"note": "," * 66_000}}})
    admin.call("PATCH", f"{CONSUMERS.format('theirs')}/labels", {"spec": {"replicas": 3}})
    assert seen(admin, "theirs", "labels")
    remove(admin, "theirs", "labels")


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_that_cannot_be_carried_out_is_refused_by_its_field_and_goes_when_it_is_deleted(admin: Admin, name: str) -> None:
    make(admin, "theirs", name, {})
    assert until(lambda: bool(pods(admin, name)))
    admin.call("PATCH", f"{CONSUMERS.format('theirs')}/{name}", {"spec": SPECS[name]})
    assert until(lambda: condition(admin, "theirs", name, "Stalled").get("reason") == "SpecInvalid")
    assert condition(admin, "theirs", name, "Stalled")["message"].startswith(("spec.", "spec: larger than"))
    assert [pod["metadata"]["name"] for pod in pods(admin, name)] == [f"{name}-driver-1"]
    remove(admin, "theirs", name)
    assert pods(admin, name) == []


def test_an_object_of_which_the_metadata_alone_is_read_is_named_by_an_event_and_goes_when_it_is_deleted(admin: Admin) -> None:
    make(admin, "theirs", "large", {})
    assert until(lambda: bool(pods(admin, "large")))
    assert seen(admin, "theirs", "large")
    status = get(admin, "theirs", "large")["status"]
    path = f"{CONSUMERS.format('theirs')}/large"
    admin.call("PATCH", path, {"spec": {"pipeline": {**SPEC["pipeline"], "args": {"a": [[]] * 180_000}}}})
    assert until(lambda: "ReconcileFailed" in reasons(admin, "large"))
    assert [pod["metadata"]["name"] for pod in pods(admin, "large")] == ["large-driver-1"]
    assert get(admin, "theirs", "large")["status"] == status
    remove(admin, "theirs", "large")
    assert pods(admin, "large") == []


def reasons(admin: Admin, name: str) -> set[str]:
    events = admin.call("GET", f"api/v1/namespaces/theirs/events?fieldSelector=involvedObject.name%3D{name}")["items"]
    return {event["reason"] for event in events}


def pods(admin: Admin, name: str) -> list[Json]:
    return list(admin.call("GET", f"api/v1/namespaces/theirs/pods?labelSelector=sluice.dev%2Fconsumer%3D{name}")["items"])


def test_a_person_sees_an_object_that_is_nested_too_deeply(admin: Admin, server: apiserver.LocalApiServer) -> None:
    make(admin, "theirs", "nested", SPECS["args"])
    assert until(lambda: condition(admin, "theirs", "nested", "Stalled") != {})
    command = (sys.executable, "-m", "sluice_kubectl", "status", "-n", "theirs")
    shown = subprocess.run(
        command, env=os.environ | {"KUBECONFIG": str(server.kubeconfig("admin")), "COLUMNS": "200"}, capture_output=True, text=True, check=False
    )
    assert "nested" in shown.stdout, shown
    assert "SpecInvalid" in shown.stdout
    remove(admin, "theirs", "nested")


def test_a_driver_is_told_the_uid_of_its_cluster(admin: Admin) -> None:
    """Of a namespace that each API server makes for itself."""
    make(admin, "theirs", "owned", {})
    assert until(lambda: bool(pods(admin, "owned")))
    (driver,) = pods(admin, "owned")
    given = {item["name"]: item.get("value") for item in driver["spec"]["containers"][0]["env"]}
    uid = admin.call("GET", "api/v1/namespaces/kube-system")["metadata"]["uid"]
    assert (given["SLUICE_OWNER"], given["SLUICE_CLUSTER"]) == ("theirs/owned", uid)
    remove(admin, "theirs", "owned")


def test_a_pod_that_a_finalizer_keeps_is_named_with_the_command_that_frees_it(admin: Admin) -> None:
    """The finalizer is of a program that is not there any more; the resource is deleted, and goes when the patch of the message was made."""
    make(admin, "theirs", "held", {})
    assert until(lambda: bool(pods(admin, "held")))
    path = "api/v1/namespaces/theirs/pods/held-driver-1"
    admin.call("PATCH", path, {"metadata": {"finalizers": ["mesh.example.com/drain"]}})
    admin.call("DELETE", f"{CONSUMERS.format('theirs')}/held")
    assert until(lambda: condition(admin, "theirs", "held", "Ready").get("reason") == "PodHeld")
    message = condition(admin, "theirs", "held", "Ready")["message"]
    assert "mesh.example.com/drain" in message
    words = shlex.split(message.partition("): ")[2].partition(". ")[0])
    assert words[:7] == ["kubectl", "patch", "pod", "held-driver-1", "-n", "theirs", "--type=merge"]
    admin.call("PATCH", path, json.loads(words[8]))
    assert until(lambda: get(admin, "theirs", "held") == {})
    assert pods(admin, "held") == []


CORE = "api/v1/namespaces/{}"
SIZED: Json = {
    "pipeline": {**SPEC["pipeline"], "env": [{"name": "A", "value": "b"}]},
    "driver": {"resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}},
    "executor": {"resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}},
}
AMOUNTS = {"requests.cpu": "8", "requests.memory": "16Gi", "limits.cpu": "8", "limits.memory": "16Gi", "pods": "9"}


@pytest.mark.parametrize(("namespace", "used"), [("roomy", {}), ("full", {"pods": "8", "limits.cpu": "7"})])
def test_a_consumer_that_is_sized_starts_under_a_quota_and_a_limit_range(admin: Admin, namespace: str, used: Json) -> None:
    admin.call("POST", "api/v1/namespaces", {"metadata": {"name": namespace}})
    core = CORE.format(namespace)
    limits = [{"type": "Container", "max": {"cpu": "2", "memory": "4Gi"}, "min": {"cpu": "10m", "memory": "16Mi"}}]
    admin.call("POST", f"{core}/limitranges", {"metadata": {"name": "sizes"}, "spec": {"limits": limits}})
    admin.call("POST", f"{core}/resourcequotas", {"metadata": {"name": "compute"}, "spec": {"hard": AMOUNTS}})
    spent = dict.fromkeys(AMOUNTS, "0") | used
    admin.call("PATCH", f"{core}/resourcequotas/compute/status", {"status": {"hard": AMOUNTS, "used": spent}})  # no controller does it here
    make(admin, namespace, "sized", SIZED)
    path = f"{core}/pods/sized-driver-1"
    assert until(lambda: admin.call("GET", path) != {}), get(admin, namespace, "sized").get("status")
    remove(admin, namespace, "sized")
