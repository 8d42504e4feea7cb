"""What the pages say of versions and files is what the tests use and the release makes."""

from __future__ import annotations

import re

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from sluice_checkpoints.formats.detect import FORMATS
from sluice_lab import hashes, places, spark_lines
from sluice_lab.machine import argocd, downloads, flux, images, node_image, tools
from sluice_lab.release import charts, krew, making, publishing, versions

SUPPORT = (places.REPO / "docs" / "support.md").read_text()
README = (places.REPO / "README.md").read_text()
RELEASES = (places.REPO / "docs" / "releases.md").read_text()
NUMBER = re.compile(r"\d+(?:\.\d+)+")


def row(name: str) -> list[str]:
    (found,) = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", SUPPORT, re.MULTILINE)
    return [cell.strip() for cell in found.split("|")]


def spark() -> set[str]:
    others = {spark_lines.pins_of(spark_lines.FOLDER / f"spark-{line}.txt")["pyspark"] for line in spark_lines.others()}
    return {spark_lines.pins_of(places.REPO / "constraints/all.txt")["pyspark"], *others}


TESTED = {
    "Kubernetes": {node_image.KUBERNETES.removeprefix("v")},
    "Spark": spark(),
    "Python": {hashes.PYTHON},
    "Helm": {tools.HELM_VERSION.removeprefix("v")},
    "Argo CD": {argocd.VERSION.removeprefix("v")},
    "Flux": {flux.VERSION.removeprefix("v")},
    "registries": {tools.REGISTRY_VERSION.removeprefix("v")},
    "AWS": {downloads.DYNAMODB_LOCALS[0].version, downloads.NODE_PACKAGES["kinesis-local"], tools.VERSITYGW_VERSION.removeprefix("v")},
}


@pytest.mark.parametrize(("name", "tested"), TESTED.items())
def test_support_says_which_versions_are_tested(name: str, tested: set[str]) -> None:
    assert set(NUMBER.findall(row(name)[0])) == tested


def test_support_says_which_kubernetes_the_chart_takes() -> None:
    wanted = yaml.safe_load((places.REPO / versions.CHART).read_text())["kubeVersion"]
    assert row("Kubernetes")[1].startswith(f"{NUMBER.search(wanted)[0].removesuffix('.0')} and later")  # type: ignore[index]


def test_support_says_which_pythons_are_meant() -> None:
    project = (places.REPO / "pyproject.toml").read_text()
    wanted = SpecifierSet(re.findall(r'^requires-python = "(.*)"$', project, re.MULTILINE)[0])
    assert [minor for minor in range(9, 14) if f"3.{minor}" in wanted] == [11, 12, 13]
    assert row("Python")[1] == "3.12 and later"


def test_support_says_which_spark_the_image_has_and_what_it_is_made_of() -> None:
    line = spark_lines.image_line()
    assert row("Spark")[0].startswith(f"{spark_lines.pins_of(spark_lines.FOLDER / f'spark-{line}.txt')['pyspark']} (the image")
    assert f"`{images.BASE}`" in row("container images")[0]


def test_support_names_every_system_that_can_be_taken_over() -> None:
    systems = re.findall(r"^\| `([a-z-]+)` \|", SUPPORT, re.MULTILINE)
    assert set(systems) == {each.name for each in FORMATS}
    golden = (places.REPO / "tests" / "checkpoints" / "golden" / "README.md").read_text()
    assert NUMBER.findall(row("`kcl`")[0]) == NUMBER.findall(golden.partition("KCL")[2].partition("wrote")[0])


def test_readme_installs_from_where_releases_are_published() -> None:
    chart = f"oci://registry.example/{publishing.CHARTS}/sluice"
    assert f"helm install sluice {chart} --version {versions.declared(places.REPO)}" in README
    (application,) = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL) if "kind: Application" in text)
    source = application["spec"]["source"]
    assert f"oci://{source['repoURL']}/{source['chart']}" == chart
    assert source["targetRevision"] == versions.declared(places.REPO)
    assert application["spec"]["destination"]["namespace"] == charts.NAMESPACE


def test_the_page_of_releases_lists_every_file_of_one() -> None:
    listed = re.findall(r"^\| `([^`]+)` \|", RELEASES.partition("## Publishing")[0], re.MULTILINE)
    version = "VERSION"
    packages = [
        f"sluice_kinesis-{version}-py3-none-any.whl",
        f"sluice_kinesis-{version}.tar.gz",
        f"sluice_kinesis-{version}-py3-none-any.whl.spdx.json",
    ]
    built = [f"{name}-{version}{end}" for name in (charts.OPERATOR, charts.CONSUMER) for end in (".oci.tar", "-linux-amd64.spdx.json")]
    manifests = [f"sluice-{version}.tgz", making.INSTALL, *making.CRDS, making.NOTES, "release.json", "SHA256SUMS"]
    plugin = [krew.MANIFEST, *(krew.archive_name(version, platform) for platform in krew.PLATFORMS)]
    assert sorted(name for name in listed if "." in name or name.isupper()) == sorted([*packages, *built, *manifests, *plugin])
