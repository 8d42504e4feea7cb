"""A cluster on which a test installs Sluice itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cluster_bench import Bench
from operating import helm, is_led, ready

from sluice_lab.release import charts
from sluice_lab.scenario import installing
from sluice_lab.scenario.installing import NAMESPACE, OPERATOR_NAMESPACE


@contextmanager
def without_sluice(bench: Bench) -> Iterator[None]:
    removed(bench)
    yield
    removed(bench)
    bench.cluster.kubectl("create", "namespace", NAMESPACE)
    helm(bench)
    bench.until("the lab's own operator", lambda: ready(bench, 2) and is_led(bench))


def removed(bench: Bench) -> None:
    if NAMESPACE in bench.cluster.kubectl("get", "namespaces", "--output=name"):
        installing.delete_namespace(bench.cluster)
    for namespace in (NAMESPACE, charts.CONSUMERS):
        forgotten(bench, namespace)
    bench.cluster.kubectl("delete", "crd", "kinesisconsumers.sluice.dev", "--ignore-not-found", "--timeout=120s")
    bench.cluster.kubectl("delete", "namespace", OPERATOR_NAMESPACE, "--ignore-not-found", "--timeout=120s")


def forgotten(bench: Bench, namespace: str) -> None:
    """Nobody is left who would let a consumer go that a failed test has left."""
    if "kinesisconsumers" in bench.cluster.kubectl("get", "crds", "--output=name"):
        for each in items(bench, namespace, "kinesisconsumers"):
            name = f"kinesisconsumer/{each['metadata']['name']}"
            bench.cluster.kubectl(f"--namespace={namespace}", "patch", name, "--type=merge", '--patch={"metadata":{"finalizers":null}}')


def items(bench: Bench, namespace: str, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(bench.cluster.kubectl(f"--namespace={namespace}", "get", kind, "--output=json"))["items"]
    return found
