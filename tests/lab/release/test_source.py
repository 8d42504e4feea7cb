"""A release is made of a commit, of all of it and of nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.release import archives
from sluice_lab.release.source import of_last_commit

WHEN = "2026-01-02T03:04:05+00:00"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "kept").write_text("kept")
    (folder / ".gitignore").write_text("ignored\n")
    environment = {"GIT_COMMITTER_DATE": WHEN, "GIT_AUTHOR_DATE": WHEN, "PATH": "/usr/bin:/usr/local/bin:/bin", "HOME": str(folder)}
    as_somebody = ("-c", "user.name=tests", "-c", "user.email=tests@example.com")
    for command in (("init", "--quiet"), ("add", "--all"), (*as_somebody, "commit", "--quiet", "--message=One")):
        subprocess.run(["git", "-C", str(folder), *command], check=True, env=environment)
    return folder


def test_only_files_of_the_commit_are_released_at_its_time(repository: Path, tmp_path: Path) -> None:
    (repository / "ignored").write_text("of this machine")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "stale").touch()
    found = of_last_commit(repository, tmp_path / "source")
    assert sorted(path.name for path in found.folder.iterdir()) == [".gitignore", "kept"]
    assert found.environment == {"SOURCE_DATE_EPOCH": "1767323045"}


@pytest.mark.parametrize("name", ["kept", "new"])
def test_changes_that_are_not_committed_are_refused_by_name(repository: Path, tmp_path: Path, name: str) -> None:
    """They would be left out in silence."""
    (repository / name).write_text("changed")
    with pytest.raises(LabError, match=f"are not in it: {name}. Next: commit or stash"):
        of_last_commit(repository, tmp_path / "source")


def test_an_archive_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    for mode in (0o644, 0o600):
        file = places.made(tmp_path / f"{mode}") / "one"
        file.write_text("1")
        file.chmod(mode)
        archives.pack(file.parent, tmp_path / f"{mode}.tgz", 1_700_000_000, compressed=True)
    assert len({path.read_bytes() for path in tmp_path.glob("*.tgz")}) == 1
