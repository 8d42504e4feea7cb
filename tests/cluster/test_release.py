"""What is published is what works: the chart from a registry by Helm, and install.yaml by kubectl, each on a cluster without Sluice."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_bench import Bench, condition, consumer, is_ready
from operating import IN, is_led, pods, ready
from published import VERSION, Published
from without_sluice import items, removed, without_sluice

from sluice_lab.release import charts, dist, oci, publishing
from sluice_lab.scenario.installing import NAMESPACE, RELEASE
from sluice_lab.scenario.topology import Stream

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

NAME, STREAM = "released", "released"


@pytest.fixture(scope="module", autouse=True)
def _without_sluice(bench: Bench) -> Iterator[None]:
    Stream(bench.aws.kinesis, STREAM).create(1)
    with without_sluice(bench):
        yield


def manifest(bench: Bench) -> dict[str, Any]:
    found = consumer(bench, NAME, batch={"intervalSeconds": 1})
    found["spec"]["stream"] |= {"name": STREAM}
    return found


def found_in(bench: Bench, namespace: str) -> dict[str, Any]:
    return next((each for each in items(bench, namespace, "kinesisconsumers") if each["metadata"]["name"] == NAME), {})


def settled(bench: Bench, namespace: str) -> bool:
    found = found_in(bench, namespace)
    return bool(found) and is_ready(found) and not condition(found, "Reconciling")


def images_of(objects: list[dict[str, Any]]) -> set[str]:
    return {container["image"] for each in objects for container in each["spec"]["containers"]}


def test_a_release_is_described_and_its_checksums_hold(published: Published) -> None:
    release = dist.read(published.folder)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", dist.SUMS], cwd=published.folder, check=True)
    for name, part in ((charts.OPERATOR, '"kopf"'), (charts.CONSUMER, '"pyspark"')):
        archive = published.folder / f"{name}-{VERSION}.oci.tar"
        manifest_there = published.registry.manifest(f"{name}:{VERSION}")
        assert publishing.of_manifest(manifest_there or b"") == oci.digest(archive)
        described = sorted(published.folder.glob(f"{name}-{VERSION}-linux-*.spdx.json"))
        assert len(described) == len(oci.platforms(archive))
        assert part in described[0].read_text()
        assert '"libc6"' in described[0].read_text()
    assert release.version == VERSION


def test_helm_installs_from_the_registry_alone(bench: Bench, published: Published) -> None:
    bench.cluster.kubectl("create", "namespace", NAMESPACE)
    chart, *options = published.chart
    how = (IN, "--create-namespace", f"--set=consumer.namespaces={{{NAMESPACE}}}", "--wait", "--timeout=5m")
    bench.cluster.helm("install", RELEASE, chart, *options, *how, seconds=400)
    bench.until("two replicas, one of which leads", lambda: ready(bench, 2) and is_led(bench))
    assert images_of(pods(bench)) == {f"{published.registry.name}/{charts.OPERATOR}:{VERSION}"}
    bench.apply(manifest(bench))
    bench.until("Ready", lambda: settled(bench, NAMESPACE), 600)
    assert images_of(bench.get("pods")) == {f"{published.registry.name}/{charts.CONSUMER}:{VERSION}"}
    assert [event for event in bench.get("events") if event["reason"] == "Pulled" and published.registry.name in event["message"]]
    bench.kubectl("delete", "kinesisconsumer", NAME, "--timeout=300s")
    removed(bench)


def test_kubectl_installs_from_one_file(bench: Bench, published: Published) -> None:
    path = f"--filename={published.folder / 'install.yaml'}"
    bench.cluster.kubectl("apply", path)
    bench.cluster.kubectl(IN, "rollout", "status", f"deployment/{RELEASE}", "--timeout=300s", seconds=320)
    assert images_of(pods(bench)) == {f"{published.registry.name}/{charts.OPERATOR}:{VERSION}"}
    bench.apply_in(charts.CONSUMERS, manifest(bench))
    bench.until("Ready", lambda: settled(bench, charts.CONSUMERS), 600)
    bench.cluster.kubectl(f"--namespace={charts.CONSUMERS}", "delete", "kinesisconsumer", NAME, "--timeout=300s")
    bench.cluster.kubectl("delete", path, "--timeout=300s", seconds=320)
    assert "kinesisconsumers" not in bench.cluster.kubectl("get", "crds", "--output=name")
