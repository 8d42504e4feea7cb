"""The chart's archive and install.yaml: the same sources give the same bytes, and both are the same objects."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import node_image
from sluice_lab.machine.processes import run
from sluice_lab.release import charts, versions
from sluice_lab.release.source import SourceTree

pytestmark = pytest.mark.built

Json = dict[str, Any]
VERSION = versions.declared(places.REPO)
REGISTRY = "registry.example/sluice"
VALUES = (places.REPO / "charts/sluice/values.yaml").read_text()


@pytest.fixture
def chart(source: SourceTree, helm: str, tmp_path: Path) -> Path:
    return charts.package(source, VERSION, REGISTRY, tmp_path / "dist", helm)


@pytest.fixture
def installed(chart: Path, helm: str) -> list[Json]:
    return list(yaml.safe_load_all(charts.manifests(chart, VERSION, REGISTRY, helm)))


def rendered(chart: Path, helm: str, *options: str) -> list[Json]:
    where = (f"--namespace={charts.NAMESPACE}", f"--kube-version={node_image.KUBERNETES}")
    text = run(helm, "template", charts.RELEASE, str(chart), *where, *options)
    return [body for body in yaml.safe_load_all(text) if body]


def named(body: Json) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def test_the_same_sources_give_the_same_chart(chart: Path, source: SourceTree, helm: str, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    shutil.copytree(source.folder / "charts", folder / "charts")
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    again = charts.package(SourceTree(folder, "", source.epoch), VERSION, REGISTRY, tmp_path / "again", helm)
    assert again.read_bytes() == chart.read_bytes()
    assert charts.manifests(again, VERSION, REGISTRY, helm) == charts.manifests(chart, VERSION, REGISTRY, helm)
    assert [path.name for path in again.parent.iterdir()] == [again.name]


def test_the_released_chart_is_this_one_with_images_of_the_registry(chart: Path, helm: str) -> None:
    mine = rendered(places.REPO / "charts" / "sluice", helm)
    text = yaml.safe_dump(mine)
    for image in (charts.OPERATOR, charts.CONSUMER):
        text = text.replace(f"{image}:{VERSION}", f"{REGISTRY}/{image}:{VERSION}")
    assert rendered(chart, helm) == list(yaml.safe_load(text))


def test_install_yaml_is_the_chart_and_a_namespace(installed: list[Json], chart: Path, helm: str) -> None:
    """With accounts for consumers in the namespace `default`, so that the first one runs there."""
    objects = {named(body): body for body in installed}
    by_helm = {named(body): body for body in rendered(chart, helm, "--set=consumer.namespaces={default}", "--no-hooks")}
    assert objects.keys() - by_helm.keys() == {("Namespace", "", charts.NAMESPACE)}
    assert by_helm.keys() <= objects.keys()
    assert {name: body.get("spec") for name, body in objects.items() if name in by_helm} == {name: body.get("spec") for name, body in by_helm.items()}
    assert ("ServiceAccount", "default", charts.CONSUMER) in objects


def test_install_yaml_makes_a_namespace_and_the_crd_before_what_needs_them(installed: list[Json]) -> None:
    """`kubectl apply` goes from top to bottom."""
    kinds = [body["kind"] for body in installed]
    assert kinds[0] == "Namespace"
    assert kinds.index("CustomResourceDefinition") < kinds.index("Deployment")


def test_install_yaml_says_nothing_of_helm(installed: list[Json]) -> None:
    """Helm would refuse, or kubectl prune, what the other seems to own."""
    labels = [body["metadata"].get("labels", {}) for body in installed]
    assert not [label for label in labels if set(label) & set(charts.HELMS)]


def test_every_image_of_install_yaml_is_of_the_registry(installed: list[Json]) -> None:
    expected = {f"{REGISTRY}/{name}:{VERSION}" for name in (charts.OPERATOR, charts.CONSUMER)}
    assert set(charts.images(installed)) == expected


def test_an_image_of_another_registry_is_refused(chart: Path, helm: str) -> None:
    with pytest.raises(LabError, match=f"images of another registry than elsewhere.example: {REGISTRY}/sluice-consumer:{VERSION}"):
        charts.manifests(chart, VERSION, "elsewhere.example", helm)


def test_a_mirror_takes_the_place_of_the_registry(chart: Path, helm: str) -> None:
    objects = rendered(chart, helm, "--set=global.imageRegistry=mirror.example/team")
    assert set(charts.images(objects)) == {f"mirror.example/team/{name}:{VERSION}" for name in (charts.OPERATOR, charts.CONSUMER)}


@pytest.mark.parametrize("values", [VALUES.replace("imageRegistry", "registry"), VALUES + '\nmore:\n  imageRegistry: ""\n'])
def test_values_that_are_not_as_expected_are_refused(values: str) -> None:
    with pytest.raises(LabError, match=r"charts/sluice/values.yaml: .* wants it once"):
        charts.with_registry(values, REGISTRY)
