"""A release is made of a commit, of all of it and of nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sluice_lab.errors import LabError
from sluice_lab.release.source import of_last_commit

WHEN = "2026-01-02T03:04:05+00:00"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "kept").write_text("kept")
    (folder / ".gitignore").write_text("ignored\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=tests", "-c", "user.email=tests@example.com", "commit", "--quiet", "--message=One")
    return folder


def git(folder: Path, *arguments: str) -> str:
    environment = {"GIT_COMMITTER_DATE": WHEN, "GIT_AUTHOR_DATE": WHEN, "PATH": "/usr/bin:/usr/local/bin:/bin", "HOME": str(folder)}
    return subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True, env=environment).stdout


def test_ignored_files_are_not_released(repository: Path, tmp_path: Path) -> None:
    (repository / "ignored").write_text("of this machine")
    found = of_last_commit(repository, tmp_path / "source")
    assert sorted(path.name for path in found.folder.iterdir()) == [".gitignore", "kept"]


def test_an_earlier_export_leaves_nothing(repository: Path, tmp_path: Path) -> None:
    stale = tmp_path / "source" / "stale"
    stale.parent.mkdir()
    stale.touch()
    assert not (of_last_commit(repository, tmp_path / "source").folder / "stale").exists()


def test_the_time_of_a_release_is_that_of_its_commit(repository: Path, tmp_path: Path) -> None:
    """So whoever makes it again, at whatever time, makes the same."""
    found = of_last_commit(repository, tmp_path / "source")
    assert found.environment == {"SOURCE_DATE_EPOCH": "1767323045"}
    assert found.revision == git(repository, "rev-parse", "HEAD").strip()


@pytest.mark.parametrize("name", ["kept", "new"])
def test_changes_that_are_not_committed_are_refused_by_name(repository: Path, tmp_path: Path, name: str) -> None:
    """They would be left out in silence."""
    (repository / name).write_text("changed")
    with pytest.raises(LabError, match=f"are not in it: {name}. Next: commit or stash"):
        of_last_commit(repository, tmp_path / "source")
    assert not (tmp_path / "source").exists()
