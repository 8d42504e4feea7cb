"""What a cluster does to a consumer: a quota, a limit range, a budget, preemption, an operator that is uninstalled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import page_blocks
import pytest
import yaml
from cluster_bench import Bench
from kubernetes.utils.quantity import parse_quantity
from operating import IN, helm, is_led, ready
from rules_world import Subject, World, world

from sluice_lab.errors import LabError
from sluice_lab.scenario.installing import NAMESPACE, RELEASE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

CROWDED, STEADY = "crowded", "disrupted"
PAGE = "docs/operations.md"
LIMITS = {"default": {"cpu": "2", "memory": "2Gi"}, "defaultRequest": {"cpu": "50m", "memory": "256Mi"}, "max": {"cpu": "4", "memory": "4Gi"}}
RANGE = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "tenants"}, "spec": {"limits": [{"type": "Container", **LIMITS}]}}
CLASSES: list[dict[str, Any]] = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("sluice-disposable", -100), ("sluice-urgent", 1000))
]


def quota(pods: int) -> dict[str, Any]:
    """Of the namespace; whatever it counts has to be asked for by each pod."""
    hard = {"pods": str(pods), "requests.cpu": "4", "requests.memory": "8Gi", "limits.cpu": "16", "limits.memory": "16Gi"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tenants"}, "spec": {"hard": hard}}


@pytest.fixture(scope="module")
def place(bench: Bench) -> Iterator[World]:
    bench.until("two replicas, one of which leads", lambda: ready(bench, 2) and is_led(bench))
    with world(bench, "disruptions", shards=2) as found:
        yield found


@pytest.fixture(scope="module")
def crowded(place: World) -> Iterator[Subject]:
    """A consumer in a namespace whose quota has no room for any pod. Its pods name no limits: the limit range does."""
    place.bench.apply(RANGE, quota(0), place.manifest(CROWDED))
    yield place.subject(CROWDED)
    place.bench.kubectl("delete", "resourcequota,limitrange", "tenants", "--ignore-not-found")


@pytest.fixture(scope="module")
def steady(place: World) -> Iterator[Subject]:
    """A consumer in one pod, the least important of the node."""
    manifest = place.manifest(STEADY)
    manifest["spec"]["executor"] = {"inDriver": True}
    manifest["spec"]["driver"]["resources"] = {"requests": {"cpu": "50m", "memory": "512Mi"}}
    manifest["spec"]["driver"]["podTemplate"]["spec"]["priorityClassName"] = "sluice-disposable"
    place.bench.apply(*CLASSES, manifest)
    subject = place.subject(STEADY)
    place.bench.until("Ready", lambda: subject.settled(1))
    yield subject
    place.bench.kubectl("delete", "priorityclass", *(each["metadata"]["name"] for each in CLASSES))


def all_kept(place: World, name: str) -> None:
    place.put()
    place.bench.until("every record", lambda: not place.missing(name))
    assert place.twice(name) == []


# -- quota and limit range -----------------------------------------------------------------------------------------------------------


def test_a_quota_without_room_for_the_driver_is_named(crowded: Subject) -> None:
    crowded.bench.until("the quota in the condition", lambda: "exceeded quota: tenants" in crowded.condition("Ready").get("message", ""))
    assert crowded.condition("Ready")["reason"] == "ApiRefused"
    assert crowded.uids("driver") == {}
    assert crowded.status.get("restarts", {}).get("count", 0) == 0


def test_a_quota_with_room_for_the_driver_alone_leaves_it_waiting(crowded: Subject) -> None:
    crowded.bench.apply(quota(1))
    crowded.bench.until("it runs without executors", lambda: crowded.condition("Ready").get("reason") == "ExecutorsPending")
    crowded.bench.until("the quota in its log", lambda: "exceeded quota: tenants" in crowded.bench.kubectl("logs", f"{CROWDED}-driver-1"))
    assert list(crowded.uids("driver")) == [f"{CROWDED}-driver-1"]


def test_what_the_operator_makes_is_sized_by_the_limit_range_and_passes_the_policy(place: World, crowded: Subject) -> None:
    crowded.bench.apply(quota(4))
    crowded.bench.until("Ready", lambda: crowded.settled(1))
    assert (list(crowded.uids("driver")), crowded.attempts()) == ([f"{CROWDED}-driver-1"], 1)
    containers = [container for role in ("driver", "executor") for pod in crowded.pods(role) for container in pod["spec"]["containers"]]
    assert len(containers) == 2
    assert all({"cpu", "memory"} <= container["resources"]["limits"].keys() for container in containers)
    all_kept(place, CROWDED)
    crowded.delete()


# -- a budget, and preemption ------------------------------------------------------------------------------------------------------------


def evict(subject: Subject, tmp_path: Path) -> None:
    """As `kubectl drain` does it.

    Raises:
        LabError: a budget does not allow it.
    """
    (name,) = subject.uids("driver")
    path = tmp_path / "eviction.json"
    path.write_text(json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}))
    subject.bench.kubectl("create", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction", f"--filename={path}")


def next_driver(place: World, subject: Subject, attempt: int) -> None:
    name = f"{subject.name}-driver-{attempt}"
    place.bench.until(f"Ready by {name}", lambda: list(subject.uids("driver")) == [name] and subject.settled(1))
    all_kept(place, subject.name)
    assert subject.status["restarts"]["count"] == 0


def test_a_budget_keeps_the_driver_until_it_is_taken_away(place: World, steady: Subject, tmp_path: Path) -> None:
    """The budget of docs/operations.md. Without it the eviction is a drain: the lease is given back, and the next driver goes on."""
    budget = yaml.safe_load(page_blocks.beginning(PAGE, "apiVersion: policy/v1").replace("orders", STEADY))
    steady.bench.apply(budget)
    driver = steady.uids("driver")
    allowed = ("get", "pdb", budget["metadata"]["name"], "--output=jsonpath={.status.currentHealthy}")
    steady.bench.until("the budget counts it", lambda: steady.bench.kubectl(*allowed) == "1")
    with pytest.raises(LabError, match="disruption budget"):
        evict(steady, tmp_path)
    assert steady.uids("driver") == driver
    all_kept(place, STEADY)
    steady.bench.kubectl("delete", "pdb", budget["metadata"]["name"])
    evict(steady, tmp_path)
    next_driver(place, steady, 2)


def test_a_driver_that_is_preempted_waits_for_room_and_goes_on(place: World, steady: Subject) -> None:
    bench = steady.bench
    place.put()
    bench.apply(urgent(bench))
    bench.until("the urgent pod runs", lambda: running(bench, "urgent"))
    bench.until("the next driver has no node", lambda: steady.condition("Ready").get("reason") == "Unschedulable")
    assert list(steady.uids("driver")) == [f"{STEADY}-driver-3"]
    bench.kubectl("delete", "pod", "urgent", "--grace-period=0", "--force")
    next_driver(place, steady, 3)


def urgent(bench: Bench) -> dict[str, Any]:
    """A pod that asks for whatever the node has left, and for a part of what the driver has."""
    cpu = free(bench) + Decimal("0.025")
    container = {
        "name": "urgent",
        "image": bench.consumer_image(),
        "command": ["sleep", "3600"],
        "resources": {"requests": {"cpu": f"{cpu * 1000:.0f}m"}},
    }
    spec = {"priorityClassName": "sluice-urgent", "containers": [container], "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent"}, "spec": spec}


def free(bench: Bench) -> Decimal:
    node = json.loads(bench.cluster.kubectl("get", "node", bench.cluster.node, "--output=json"))
    pods = json.loads(bench.cluster.kubectl("get", "pods", "--all-namespaces", "--output=json"))["items"]
    placed = [pod["spec"] for pod in pods if pod["status"].get("phase") not in {"Succeeded", "Failed"} and pod["spec"].get("nodeName")]
    asked = [c.get("resources", {}).get("requests", {}).get("cpu", "0") for spec in placed for c in spec["containers"]]
    left: Decimal = parse_quantity(node["status"]["allocatable"]["cpu"]) - sum(map(parse_quantity, asked))
    return left


def running(bench: Bench, name: str) -> bool:
    return any(pod["metadata"]["name"] == name and pod["status"].get("phase") == "Running" for pod in bench.get("pods"))


# -- an operator that is gone --------------------------------------------------------------------------------------------------------------


def test_consumers_go_on_while_the_operator_is_uninstalled_and_their_deletion_waits_for_it(place: World, steady: Subject) -> None:
    bench, driver = steady.bench, steady.uids("driver")
    bench.cluster.helm("uninstall", RELEASE, IN, "--wait")
    try:
        all_kept(place, STEADY)
        bench.kubectl("delete", "kinesisconsumer", STEADY, "--wait=false")
        all_kept(place, STEADY)
        assert steady.uids("driver") == driver
    finally:
        helm(bench)
    bench.until("two replicas, one of which leads", lambda: ready(bench, 2) and is_led(bench))
    bench.until(
        "all of it is gone", lambda: steady.left() == [] and STEADY not in {each["metadata"]["name"] for each in bench.get("kinesisconsumers")}
    )
    assert place.twice(STEADY) == []
