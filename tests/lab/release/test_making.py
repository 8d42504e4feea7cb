"""A whole release but for its images, from `make version` to checksums, twice."""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.release import dist, making, notes, versions
from sluice_lab.release.source import SourceTree, of_last_commit

pytestmark = pytest.mark.built

PARTS = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "constraints/all.txt", "consumer", "operator", "charts", "crds")
VERSION, REGISTRY = "7.8.9-rc.1", "registry.example/sluice"


@pytest.fixture(scope="module")
def commit(tmp_path_factory: pytest.TempPathFactory) -> SourceTree:
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
    return of_last_commit(folder, tmp_path_factory.mktemp("release") / "source")


def made(commit: SourceTree, out: Path) -> Path:
    making.make(making.Order(commit, VERSION, REGISTRY, out, places.work()), with_images=False, with_plugin=False)
    return out


@pytest.fixture(scope="module")
def release(commit: SourceTree, helm: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert helm
    return made(commit, tmp_path_factory.mktemp("dist") / "dist")


def test_a_release_is_all_that_is_published_and_the_same_twice(commit: SourceTree, release: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "stale.whl").touch()
    assert (made(commit, second) / dist.SUMS).read_text() == (release / dist.SUMS).read_text()
    assert {path.name for path in second.iterdir()} == {
        "sluice_kinesis-7.8.9rc1-py3-none-any.whl",
        "sluice_kinesis-7.8.9rc1-py3-none-any.whl.spdx.json",
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
    assert (second / "release-notes.md").read_text() == "* A test of releases.\n"


def test_a_release_says_what_it_is_of_and_what_was_left_out(commit: SourceTree, release: Path) -> None:
    found = dist.read(release)
    assert (found.version, found.revision, found.registry, found.untried) == (
        VERSION,
        commit.revision,
        REGISTRY,
        ["plugin of kubectl: left out (PLUGIN=no)", "images: left out (IMAGES=no)"],
    )


def test_the_wheels_document_has_the_versions_that_are_tested(release: Path) -> None:
    document = json.loads((release / "sluice_kinesis-7.8.9rc1-py3-none-any.whl.spdx.json").read_text())
    listed = {package["name"]: package["versionInfo"] for package in document["packages"]}
    pinned = dict(line.lower().split("==") for line in (places.REPO / "constraints/all.txt").read_text().split())
    assert {listed[name] == pinned[name] for name in ("kopf", "pyspark", "boto3", "click")} == {True}


def test_another_version_than_that_of_the_commit_is_refused_and_makes_nothing(commit: SourceTree, tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    with pytest.raises(LabError, match=r"these sources are not 7.8.9"):
        making.make(making.Order(commit, "7.8.9", REGISTRY, tmp_path, places.work()), with_images=False, with_plugin=False)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_the_notes_of_a_candidate_are_its_own(commit: SourceTree) -> None:
    assert list(notes.sections((commit.folder / "CHANGELOG.md").read_text())) == ["Unreleased", VERSION]
