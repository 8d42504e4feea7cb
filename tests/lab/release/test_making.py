"""A whole release but for images and plugin, from `make version` to checksums, twice, and read back."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import node_image
from sluice_lab.machine.processes import run
from sluice_lab.release import charts, dist, making, versions, wheels
from sluice_lab.release.source import SourceTree, of_last_commit

pytestmark = pytest.mark.built

Json = dict[str, Any]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "constraints/all.txt", "consumer", "operator", "charts", "crds")
VERSION, REGISTRY = "7.8.9-rc.1", "registry.example/sluice"
WHEEL = "sluice_kinesis-7.8.9rc1-py3-none-any.whl"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    for name in PARTS:
        origin = places.REPO / name
        if origin.is_dir():
            shutil.copytree(origin, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(origin, folder / name)
    (folder / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n* A test of releases.\n")
    versions.write(folder, VERSION, datetime.date(2026, 12, 1), [])
    git = ("git", "-C", str(folder), "-c", "user.name=tests", "-c", "user.email=tests@example.com")
    for command in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message=Release")):
        subprocess.run([*git, *command], check=True)
    return folder


@pytest.fixture(scope="module")
def commit(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> SourceTree:
    return of_last_commit(repository, tmp_path_factory.mktemp("release") / "source")


def made(commit: SourceTree, out: Path) -> Path:
    making.make(making.Order(commit, VERSION, REGISTRY, out, places.work()), with_images=False, with_plugin=False)
    return out


@pytest.fixture(scope="module")
def release(commit: SourceTree, helm: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert helm
    return made(commit, tmp_path_factory.mktemp("dist") / "dist")


def test_a_release_is_all_that_is_published_and_the_same_at_another_time_in_another_folder(repository: Path, release: Path, tmp_path: Path) -> None:
    again = of_last_commit(repository, tmp_path / "elsewhere")
    for path in again.folder.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o055)
        os.utime(path, (1, 1))
    second = tmp_path / "second"
    second.mkdir()
    (second / "stale.whl").touch()
    assert (made(again, second) / dist.SUMS).read_text() == (release / dist.SUMS).read_text()
    assert {path.name for path in second.iterdir()} == {
        WHEEL,
        f"{WHEEL}.spdx.json",
        "sluice_kinesis-7.8.9rc1.tar.gz",
        f"sluice-{VERSION}.tgz",
        "install.yaml",
        "kinesisconsumers.sluice.dev.yaml",
        "kinesisconsumerpools.sluice.dev.yaml",
        "release-notes.md",
        "release.json",
        "SHA256SUMS",
    }
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", dist.SUMS], cwd=second, check=True)
    assert {line.split()[1] for line in (second / dist.SUMS).read_text().splitlines()} == {path.name for path in second.iterdir()} - {dist.SUMS}
    assert (second / "release-notes.md").read_text() == "* A test of releases.\n"
    found = dist.read(second)
    assert (found.version, found.revision, found.registry, found.untried) == (
        VERSION,
        again.revision,
        REGISTRY,
        ["plugin of kubectl: left out (PLUGIN=no)", "images: left out (IMAGES=no)"],
    )


def test_the_sdist_gives_the_same_wheel(commit: SourceTree, release: Path, tmp_path: Path) -> None:
    """So who builds from it has what was released, and nothing that the wheel needs is missing."""
    with tarfile.open(release / "sluice_kinesis-7.8.9rc1.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    built = wheels.build(SourceTree(folder, "", commit.epoch), "7.8.9rc1", tmp_path / "dist")
    assert built.wheel.read_bytes() == (release / WHEEL).read_bytes()


def test_the_wheels_document_has_the_versions_that_are_tested(release: Path) -> None:
    document = json.loads((release / f"{WHEEL}.spdx.json").read_text())
    listed = {package["name"]: package["versionInfo"] for package in document["packages"]}
    pinned = dict(line.lower().split("==") for line in (places.REPO / "constraints/all.txt").read_text().split())
    assert {listed[name] == pinned[name] for name in ("kopf", "pyspark", "boto3", "click")} == {True}
    assert {each["relationshipType"] for each in document["relationships"]} == {"DESCRIBES", "OPTIONAL_DEPENDENCY_OF"}


def rendered(chart: Path, helm: str, *options: str) -> list[Json]:
    where = (f"--namespace={charts.NAMESPACE}", f"--kube-version={node_image.KUBERNETES}")
    return [body for body in yaml.safe_load_all(run(helm, "template", charts.RELEASE, str(chart), *where, *options)) if body]


def test_the_released_chart_is_this_one_with_images_of_the_registry(commit: SourceTree, release: Path, helm: str) -> None:
    text = yaml.safe_dump(rendered(commit.folder / "charts" / "sluice", helm))
    for image in (charts.OPERATOR, charts.CONSUMER):
        text = text.replace(f"{image}:{VERSION}", f"{REGISTRY}/{image}:{VERSION}")
    assert rendered(release / f"sluice-{VERSION}.tgz", helm) == list(yaml.safe_load(text))


def named(body: Json) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def test_install_yaml_is_the_chart_with_accounts_for_consumers_behind_a_namespace_and_says_nothing_of_helm(release: Path, helm: str) -> None:
    """`kubectl apply` goes from top to bottom. Helm would refuse, or kubectl prune, what the other seems to own."""
    installed = list(yaml.safe_load_all((release / "install.yaml").read_text()))
    specs = {named(body): body.get("spec") for body in installed}
    by_helm = rendered(release / f"sluice-{VERSION}.tgz", helm, "--set=consumer.namespaces={default}", "--no-hooks")
    assert named(installed[0]) == ("Namespace", "", charts.NAMESPACE)
    assert dict(list(specs.items())[1:]) == {named(body): body.get("spec") for body in by_helm}
    assert ("ServiceAccount", "default", charts.CONSUMER) in specs
    kinds = [body["kind"] for body in installed]
    assert kinds.index("CustomResourceDefinition") < kinds.index("Deployment")
    assert not [body for body in installed if set(body["metadata"].get("labels", {})) & set(charts.HELMS)]
    assert set(charts.images(installed)) == {f"{REGISTRY}/{name}:{VERSION}" for name in (charts.OPERATOR, charts.CONSUMER)}


def test_another_version_than_that_of_the_commit_is_refused_and_makes_nothing(commit: SourceTree, tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    with pytest.raises(LabError, match=r"these sources are not 7.8.9: pyproject.toml says .*; charts/sluice/Chart.yaml says"):
        making.make(making.Order(commit, "7.8.9", REGISTRY, tmp_path, places.work()), with_images=False, with_plugin=False)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
