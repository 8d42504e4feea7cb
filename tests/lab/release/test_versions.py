"""The version has one place; what repeats it is the same."""

from __future__ import annotations

import datetime
import shutil
import subprocess
from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.release import versions

TODAY = datetime.date(2026, 12, 1)
DECLARED = versions.declared(places.REPO)
TRACKED = subprocess.run(["git", "ls-files"], cwd=places.REPO, check=True, capture_output=True, text=True).stdout.split()
MENTIONS = [name for name in TRACKED if name.endswith((".md", "Dockerfile", ".yaml")) and not name.startswith("tests/")]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for name in (versions.PROJECT, versions.CHART, versions.CHANGES, "docs/images.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(places.REPO / name, tmp_path / name)
    return tmp_path


def test_the_chart_has_the_version_of_the_project() -> None:
    """Both of its versions: the images have the same tag."""
    assert versions.in_chart(places.REPO) == [DECLARED, DECLARED]


def test_documents_and_examples_name_the_images_of_this_version() -> None:
    """Whoever copies a line gets what the page is about."""
    named = {name: set(versions.NAMED.findall((places.REPO / name).read_text())) for name in MENTIONS}
    assert {name: found for name, found in named.items() if found - {DECLARED}} == {}
    assert any(named.values())


def test_a_new_version_is_written_wherever_it_is_repeated(sources: Path) -> None:
    changed = versions.write(sources, "7.8.9-rc.1", TODAY, [sources / "docs/images.md"])
    assert changed == [versions.CHANGES, versions.CHART, "docs/images.md", versions.PROJECT]
    versions.check(sources, "7.8.9-rc.1")
    assert "FROM registry.example/sluice-consumer:7.8.9-rc.1\n" in (sources / "docs/images.md").read_text()
    assert (sources / versions.PROJECT).read_text().count("7.8.9-rc.1") == 1


def test_writing_a_version_twice_changes_nothing_more(sources: Path) -> None:
    """An interrupted `make version` is run again."""
    assert versions.write(sources, "7.8.9", TODAY, [])
    assert versions.write(sources, "7.8.9", TODAY, []) == []


@pytest.mark.parametrize("text", ["", "1.2", "v1.2.3", "1.2.3rc1", "1.2.3-beta", "1.2.3\n"])
def test_what_is_no_version_is_refused(sources: Path, text: str) -> None:
    with pytest.raises(LabError, match=r"VERSION: .* is neither X.Y.Z nor X.Y.Z-rc.N"):
        versions.check(sources, text)
    with pytest.raises(LabError, match="VERSION"):
        versions.write(sources, text, TODAY, [])


def test_a_version_that_the_sources_do_not_have_is_refused(sources: Path) -> None:
    with pytest.raises(LabError) as refused:
        versions.check(sources, "7.8.9")
    assert str(refused.value) == (
        f"VERSION: these sources are not 7.8.9: pyproject.toml says {DECLARED}; charts/sluice/Chart.yaml says {DECLARED}. "
        "Next: make version VERSION=7.8.9, and commit what it wrote"
    )


def test_a_version_without_notes_is_refused(sources: Path) -> None:
    versions.write(sources, "7.8.9", TODAY, [])
    (sources / versions.CHANGES).write_text("# Changes\n\n## Unreleased\n\n* One.\n")
    with pytest.raises(LabError, match=r"CHANGELOG.md has no section `## 7.8.9`.*Next: make version VERSION=7.8.9"):
        versions.check(sources, "7.8.9")


@pytest.mark.parametrize(("version", "expected"), [("0.2.0", "0.2.0"), ("0.2.0-rc.1", "0.2.0rc1")])
def test_pythons_tools_write_a_candidate_their_own_way(version: str, expected: str) -> None:
    assert versions.of_python(version) == expected
