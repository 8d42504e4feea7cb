"""install.yaml on a real API server, and Helm after it. That a consumer runs then, tests/cluster/test_release.py shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.machine import apiserver
from sluice_lab.machine.processes import run
from sluice_lab.release import charts, versions
from sluice_lab.release.source import SourceTree

pytestmark = [pytest.mark.built, pytest.mark.slow]

REGISTRY, VERSION = "registry.example/sluice", versions.declared(places.REPO)
UIDS = ("get", "serviceaccounts,crds,deployments", "--all-namespaces", "--output=jsonpath={.items[*].metadata.uid}")


def test_kubectl_applies_all_of_it_at_once_and_helm_takes_it_over(source: SourceTree, helm: str, tmp_path: Path) -> None:
    """Who begins with install.yaml comes to Helm later without taking anything down."""
    chart = charts.package(source, VERSION, REGISTRY, tmp_path, helm)
    (tmp_path / "install.yaml").write_text(charts.manifests(chart, VERSION, REGISTRY, helm))
    with apiserver.running(places.work(), ("admin",)) as server:
        kubectl = (str(apiserver.kubectl(places.work())), f"--kubeconfig={server.kubeconfig('admin')}")
        applied = run(*kubectl, "apply", f"--filename={tmp_path / 'install.yaml'}").splitlines()
        assert applied
        assert all(line.endswith(" created") for line in applied)
        before = set(run(*kubectl, *UIDS).split())
        where = (f"--namespace={charts.NAMESPACE}", kubectl[1])
        run(helm, "upgrade", "--install", charts.RELEASE, str(chart), "--take-ownership", "--set=consumer.namespaces={default}", *where)
        assert set(run(*kubectl, *UIDS).split()) == before
