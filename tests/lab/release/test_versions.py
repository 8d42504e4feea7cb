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


def test_documents_and_examples_name_the_images_of_this_version_and_so_does_the_chart() -> None:
    """Whoever copies a line gets what the page is about."""
    named = {name: set(versions.NAMED.findall((places.REPO / name).read_text())) for name in MENTIONS}
    assert {name: found for name, found in named.items() if found - {DECLARED}} == {}
    assert any(named.values())
    assert versions.in_chart(places.REPO) == [DECLARED, DECLARED]


def test_a_new_version_is_written_wherever_it_is_repeated_and_once(sources: Path) -> None:
    """An interrupted `make version` is run again."""
    mentions = [sources / "docs/images.md"]
    assert versions.write(sources, "7.8.9-rc.1", TODAY, mentions) == [versions.CHANGES, versions.CHART, "docs/images.md", versions.PROJECT]
    versions.check(sources, "7.8.9-rc.1")
    assert "FROM registry.example/sluice-consumer:7.8.9-rc.1\n" in (sources / "docs/images.md").read_text()
    assert (sources / versions.PROJECT).read_text().count("7.8.9-rc.1") == 1
    assert versions.write(sources, "7.8.9-rc.1", TODAY, mentions) == []


@pytest.mark.parametrize("text", ["", "1.2", "v1.2.3", "1.2.3rc1", "1.2.3-beta", "1.2.3\n"])
def test_what_is_no_version_is_refused(sources: Path, text: str) -> None:
    with pytest.raises(LabError, match=r"VERSION: .* is neither X.Y.Z nor X.Y.Z-rc.N"):
        versions.write(sources, text, TODAY, [])


def test_a_version_without_notes_is_refused(sources: Path) -> None:
    versions.write(sources, "7.8.9", TODAY, [])
    (sources / versions.CHANGES).write_text("# Changes\n\n## Unreleased\n\n* One.\n\n## 7.8.9\n\n")
    with pytest.raises(LabError, match=r"CHANGELOG.md has no section `## 7.8.9`.*Next: make version VERSION=7.8.9"):
        versions.check(sources, "7.8.9")
