"""install.yaml on a real API server: `kubectl apply -f` takes it, and then takes a consumer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.machine import apiserver, cluster
from sluice_lab.machine.processes import run
from sluice_lab.release import charts, versions
from sluice_lab.release.source import SourceTree

pytestmark = [pytest.mark.built, pytest.mark.slow]

Kubectl = Callable[..., str]
REGISTRY, VERSION = "registry.example/sluice", versions.declared(places.REPO)
CONSUMER = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "KinesisConsumer",
    "metadata": {"name": "orders", "namespace": charts.CONSUMERS},
    "spec": {"stream": {"name": "orders", "region": "eu-west-1"}, "pipeline": {"entrypoint": "sluice_consumer.pipelines:console"}},
}


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[Path]:
    with apiserver.running(places.work(), ("admin",)) as server:
        yield server.kubeconfig("admin")


@pytest.fixture(scope="module")
def kubectl(kubeconfig: Path) -> Kubectl:
    program = apiserver.kubectl(places.work())
    return lambda *arguments: run(str(program), f"--kubeconfig={kubeconfig}", *arguments)


@pytest.fixture(scope="module")
def manifest(source: SourceTree, helm: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    chart = charts.package(source, VERSION, REGISTRY, out, helm)
    (out / "install.yaml").write_text(charts.manifests(chart, VERSION, REGISTRY, helm))
    return out / "install.yaml"


def test_kubectl_apply_takes_all_of_it_at_once(kubectl: Kubectl, manifest: Path) -> None:
    first = kubectl("apply", f"--filename={manifest}").splitlines()
    assert first
    assert all(line.endswith(" created") for line in first)
    versions_of_all = ("get", f"--filename={manifest}", "--output=jsonpath={.items[*]['metadata.uid', 'metadata.generation']}")
    before = kubectl(*versions_of_all)
    kubectl("apply", f"--filename={manifest}")
    assert kubectl(*versions_of_all) == before


def test_then_a_consumer_can_be_applied(kubectl: Kubectl, tmp_path: Path) -> None:
    path = tmp_path / "orders.json"
    path.write_text(json.dumps(CONSUMER))
    cluster.established(kubectl, "crd/kinesisconsumers.sluice.dev")
    assert kubectl("apply", f"--filename={path}").strip() == "kinesisconsumer.sluice.dev/orders created"
    accounts = kubectl(f"--namespace={charts.CONSUMERS}", "get", "serviceaccounts", "--output=name").split()
    assert {"serviceaccount/sluice-consumer", "serviceaccount/sluice-executor"} <= set(accounts)


def test_helm_takes_over_what_kubectl_installed(kubectl: Kubectl, kubeconfig: Path, manifest: Path, helm: str) -> None:
    """Who begins with install.yaml comes to Helm later without taking anything down."""
    accounts = ("get", "serviceaccounts,crds,deployments", "--all-namespaces", "--output=jsonpath={.items[*].metadata.uid}")
    before = set(kubectl(*accounts).split())
    where = (f"--namespace={charts.NAMESPACE}", f"--kubeconfig={kubeconfig}")
    chart = manifest.with_name(f"sluice-{VERSION}.tgz")
    run(helm, "upgrade", "--install", charts.RELEASE, str(chart), "--take-ownership", "--set=consumer.namespaces={default}", *where)
    assert set(kubectl(*accounts).split()) == before
