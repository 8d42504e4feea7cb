"""A namespace that the operator watches is deleted: what is in it goes, no process ends, and the other namespace is looked after as before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_bench import Bench, condition, consumer, is_ready
from operating import IN, helm, is_led, leader, pods, ready

from sluice_lab.scenario.installing import NAMESPACE, RELEASE
from sluice_lab.scenario.topology import Stream

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

NAME, STREAM, DOOMED = "bereft", "bereft", "sluice-doomed"
LONGER = 70.0  # seconds: kopf ends a process after a minute of refusals


@pytest.fixture(scope="module", autouse=True)
def _steady(bench: Bench) -> Iterator[None]:
    bench.until("two replicas, one of which leads", lambda: ready(bench, 2) and is_led(bench))
    with Stream(bench.aws.kinesis, STREAM).existing(1):
        bench.apply(manifest(bench, NAME))
        bench.until("Ready", lambda: settled(bench))
        yield
        helm(bench)
        bench.kubectl("delete", "kinesisconsumer", NAME, "--ignore-not-found", "--timeout=300s")


def manifest(bench: Bench, name: str) -> dict[str, Any]:
    found = consumer(bench, name, batch={"intervalSeconds": 1})
    found["spec"]["stream"] |= {"name": STREAM}
    return found


def settled(bench: Bench) -> bool:
    found = bench.resource(NAME)
    return is_ready(found) and not condition(found, "Reconciling") and found["status"].get("replicas") == 1


def test_a_watched_namespace_can_be_deleted_with_a_running_consumer_in_it(bench: Bench) -> None:
    """Its RoleBinding goes first; the consumer goes all the same, and the other namespace is looked after as before."""
    bench.cluster.kubectl("create", "namespace", DOOMED)
    helm(bench, watchNamespaces=[NAMESPACE, DOOMED], consumer={"image": bench.consumer_image(), "namespaces": [NAMESPACE, DOOMED]})
    there = f"--namespace={DOOMED}"
    bench.apply_in(DOOMED, manifest(bench, "doomed"))
    bench.until("a driver", lambda: "doomed-driver-1" in bench.cluster.kubectl(there, "get", "pods", "--output=name"))
    bench.cluster.kubectl("delete", "namespace", DOOMED, "--timeout=300s")
    bench.kubectl("patch", "kinesisconsumer", NAME, "--type=merge", '--patch={"spec":{"suspend":true}}')
    bench.until("phase Suspended", lambda: bench.resource(NAME)["status"]["phase"] == "Suspended")


def test_a_namespace_that_is_gone_ends_no_process(bench: Bench) -> None:
    """Watches of it are refused from the start now, for longer than the minute after which kopf would end; the others are looked after."""
    bench.cluster.kubectl(IN, "rollout", "restart", f"deployment/{RELEASE}")
    bench.cluster.kubectl(IN, "rollout", "status", f"deployment/{RELEASE}", "--timeout=300s")
    bench.until("two replicas, one of which leads", lambda: ready(bench, 2) and is_led(bench))
    began = time.monotonic()
    bench.until("refused for longer than a minute", lambda: refused(bench) and time.monotonic() - began > LONGER)
    bench.kubectl("patch", "kinesisconsumer", NAME, "--type=merge", '--patch={"spec":{"suspend":false}}')
    bench.until("Ready again", lambda: settled(bench))
    assert sum(c["restartCount"] for pod in pods(bench) for c in pod["status"]["containerStatuses"]) == 0


def refused(bench: Bench) -> bool:
    """Whether the leader says that it may not watch any more; it says so once."""
    return f"Pods in namespace {DOOMED} are not watched: 403" in bench.cluster.kubectl(IN, "logs", leader(bench))
