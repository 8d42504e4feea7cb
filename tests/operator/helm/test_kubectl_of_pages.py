"""Manifests and `kubectl` of the How-to pages and of docs/migrate, before a real API server with the CRD.

Nothing else is there, and no operator: nothing starts, and what is changed is what was typed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import page_blocks
import pytest
import yaml
from chart import NAMESPACE, of, rendered
from crd_server import install
from executors_kubelet import Admin
from page_blocks import ROOT

from sluice_lab import places
from sluice_lab.machine import apiserver
from sluice_lab.machine.downloads import required
from sluice_lab.machine.processes import run

pytestmark = pytest.mark.built

Json = dict[str, Any]
Typed = Callable[[str], str]
MIGRATE = ("kcl", "nifi", "vmware-go-kcl", "kinsumer", "awslabs")
PARTS = {"spec:": None, "pipeline:": "spec", "sparkConf:": "spec"}  # a block that begins so is a part of a consumer, at this place
WAITS = "kubectl wait --for=condition="  # for what only a working operator makes true


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[Path]:
    with apiserver.running(places.work(), ("admin",)) as server:
        install(Admin(server).call)
        yield server.kubeconfig("admin")


@pytest.fixture
def typed(kubeconfig: Path, tmp_path: Path) -> Typed:
    path = f"{apiserver.kubectl(places.work()).parent}{os.pathsep}{os.environ['PATH']}"
    return lambda commands: run("bash", "-euc", commands, cwd=tmp_path, env={"KUBECONFIG": str(kubeconfig), "PATH": path})


def merged(body: Json, part: Json) -> Json:
    return body | {name: merged(body.get(name, {}), value) if isinstance(value, dict) else value for name, value in part.items()}


def consumers() -> list[Any]:
    whole = yaml.safe_load(page_blocks.beginning("docs/start/eks.md", "apiVersion:"))
    found = []
    for page in sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")):
        for each in (each for each in page_blocks.of(page) if each.language == "yaml"):
            head, body = each.text.split("\n", maxsplit=1)[0], next(yaml.safe_load_all(each.text))
            if head == "stream:":
                body = {**whole, "spec": {**whole["spec"], **body}}  # another stream, not a part of the same
            if head in PARTS:
                place = PARTS[head]
                body = merged(whole, {place: body} if place else body)
            if isinstance(body, dict) and body.get("kind") == "KinesisConsumer":
                found.append(pytest.param(body, id=f"{page}:{head}"))
    return found


@pytest.mark.parametrize("body", consumers())
def test_the_api_server_takes_a_consumer_of_a_page(typed: Typed, body: Json, tmp_path: Path) -> None:
    """With strict validation: a field that it does not know is an error."""
    (tmp_path / "consumer.yaml").write_text(yaml.safe_dump(body))
    assert "created (server dry run)" in typed("kubectl apply -f consumer.yaml --dry-run=server --validate=strict")


def test_a_field_that_is_mistyped_would_be_refused(typed: Typed, tmp_path: Path) -> None:
    """Else the claim above would be of nothing."""
    body = merged(yaml.safe_load(page_blocks.beginning("docs/start/eks.md", "apiVersion:")), {"spec": {"replica": 1}})
    (tmp_path / "consumer.yaml").write_text(yaml.safe_dump(body))
    with pytest.raises(Exception, match=r'unknown field "spec\.replica"'):
        typed("kubectl apply -f consumer.yaml --dry-run=server --validate=strict")


def test_argo_cds_configmap_gets_the_health_check_and_keeps_what_it_has(typed: Typed, tmp_path: Path) -> None:
    """docs/gitops.md, "Health", beside the chart's own ConfigMap."""
    required("jq", "jq (Debian: apt-get install jq)")
    (ours,) = of("ConfigMap", rendered("--show-only=templates/argocd.yaml", argocd={"customizations": True}))
    (tmp_path / "ours.yaml").write_text(yaml.safe_dump(ours))
    typed(f"kubectl create namespace {NAMESPACE} && kubectl -n {NAMESPACE} apply -f ours.yaml")
    typed("kubectl create namespace argocd && kubectl -n argocd create configmap argocd-cm --from-literal=kept=yes")
    typed(page_blocks.beginning("docs/gitops.md", "kubectl -n sluice-system"))
    assert json.loads(typed("kubectl -n argocd get configmap argocd-cm -o json"))["data"] == ours["data"] | {"kept": "yes"}


@pytest.fixture(params=MIGRATE)
def page(typed: Typed, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"docs/migrate/{request.param}.md"
    deployments = set(re.findall(r"kubectl scale deployment (\S+)", (ROOT / name).read_text()))
    for each in deployments:
        typed(f"kubectl create deployment {each} --image=nobody.example/nothing --replicas=1")
    yield name
    typed("kubectl delete kc orders")
    for each in deployments:
        typed(f"kubectl delete deployment {each}")


def test_kubectl_of_a_migration_does_what_its_page_says(typed: Typed, tmp_path: Path, page: str) -> None:
    """In the page's order, but for what needs the operator: a condition. A watch has no end, and is a look here."""
    (manifest,) = (each.text for each in page_blocks.of(page) if each.language == "yaml")
    (tmp_path / "consumer.yaml").write_text(manifest)
    lines = [line for each in page_blocks.of(page) if each.language == "sh" for line in each.text.splitlines() if line.startswith("kubectl ")]
    for line in (line for line in lines if not line.startswith(WAITS)):
        typed(line.removesuffix(" --watch"))
    assert json.loads(typed("kubectl get kc orders -o json"))["spec"]["suspend"] is True
    scaled = [re.findall(r"scale deployment (\S+) --replicas=(\d+)", line)[0] for line in lines if " scale " in line]
    assert all(typed(f"kubectl get deployment {name} -o jsonpath={{.spec.replicas}}") == dict(scaled)[name] for name, _ in scaled)
