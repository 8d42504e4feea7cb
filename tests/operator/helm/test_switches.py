"""Whatever is switched on in the chart, Kubernetes takes what comes out: the oldest version that the chart allows, and the newest."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart import CHART, helm, of, one, rendered
from chart_switches import SINCE, SWITCHES, leaves
from kubernetes_schemas import NEWEST, OLDEST, mistakes

from sluice_lab.generate.values import Value, values

pytestmark = [pytest.mark.built, pytest.mark.slow]

Json = dict[str, Any]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", SWITCHES)
def test_rendered_manifests_are_what_kubernetes_takes(name: str, version: str) -> None:
    version = max(version, SINCE.get(name, version), key=lambda text: tuple(map(int, text.split("."))))
    objects = rendered(f"--kube-version={version}.0", **SWITCHES[name])
    assert objects
    assert [found for body in objects if (found := mistakes(body, version))] == []


MISTAKES: dict[str, tuple[Json, Json]] = {
    "unknown field": ({"replica": 2}, {"podMetricsEndpoint": []}),
    "wrong type": ({"replicas": "2"}, {"selector": "app"}),
    "missing field": ({"template": ...}, {"selector": ...}),
}


@pytest.mark.parametrize("changes", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_a_manifest_is_found(changes: tuple[Json, Json]) -> None:
    bodies = one("Deployment", rendered()), one("PodMonitor", rendered(podMonitor={"enabled": True}))
    for body, change in zip(bodies, changes, strict=True):
        spec = {key: value for key, value in {**body["spec"], **change}.items() if value is not ...}
        assert mistakes(body, NEWEST) == ""
        assert next(iter(change)) in mistakes({**body, "spec": spec}, NEWEST)


def documented() -> list[Value]:
    return [value for value in values((CHART / "values.yaml").read_text()) if value.default is not None]


def test_every_value_is_switched() -> None:
    """By some set of values, or the test above would not see what it does."""
    switched = {path for one_set in SWITCHES.values() for path in leaves(one_set)}
    parts = {path.rsplit(".", depth)[0] for path in switched for depth in range(4)}
    assert [value.path for value in documented() if value.path not in parts] == []


def test_helm_finds_nothing_to_say() -> None:
    """`helm lint`, strictly: a warning fails too."""
    found = subprocess.run([helm(), "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    assert not [line for line in found.stdout.splitlines() if line.startswith("[")], found.stdout


@pytest.mark.parametrize("name", SWITCHES)
def test_helm_finds_nothing_to_say_with_values(name: str, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(json.dumps(SWITCHES[name]))
    command = [helm(), "lint", "--strict", "--quiet", str(CHART), f"--values={tmp_path / 'values.yaml'}", "--kube-version=1.34.0"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


def test_no_object_comes_twice() -> None:
    """Helm would apply the later one."""
    for one_set in SWITCHES.values():
        names = [(body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"]) for body in rendered(**one_set)]
        assert len(names) == len(set(names))


def test_common_labels_and_annotations_are_on_every_object() -> None:
    common: Json = {"commonLabels": {"team": "data", "app.kubernetes.io/name": "other"}, "commonAnnotations": {"owner": "data", "role": "other"}}
    account = {"consumer": {"serviceAccount": {"annotations": {"role": "x"}}}}
    for one_set in SWITCHES.values():
        objects = rendered(**{**one_set, "extraObjects": [], **common})
        assert objects
        for body in objects:
            meta = body["metadata"]
            assert meta["labels"]["team"] == "data", meta
            assert meta["annotations"]["owner"] == "data", meta
    template = one("Deployment", rendered(**common))["spec"]["template"]["metadata"]
    assert template["labels"] == {"app.kubernetes.io/name": "sluice", "app.kubernetes.io/instance": "sluice", "team": "data"}
    drivers = of("ServiceAccount", rendered(watchNamespaces=["a"], **account, **common))
    assert {body["metadata"]["annotations"]["role"] for body in drivers if body["metadata"]["namespace"] == "a"} == {"x"}


def test_the_chart_says_what_it_is() -> None:
    meta = yaml.safe_load((CHART / "Chart.yaml").read_text())
    shipped = of("CustomResourceDefinition", rendered())
    for crd, found in zip(yaml.safe_load(meta["annotations"]["artifacthub.io/crds"]), shipped, strict=True):
        assert crd["name"] == found["metadata"]["name"]
        assert crd["version"] in {version["name"] for version in found["spec"]["versions"]}
        assert crd["kind"] == found["spec"]["names"]["kind"]
    assert meta["icon"] == icon()
    assert meta["kubeVersion"] == f">={OLDEST}.0-0"
    assert meta["maintainers"]
    assert meta["keywords"]


def icon() -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode((CHART / 'icon.svg').read_bytes()).decode()}"
