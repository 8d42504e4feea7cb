"""What is released: the files of the last commit, and its time. Nothing that lies beside them in a clone gets into a release."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine.processes import run


@dataclass(frozen=True)
class SourceTree:
    """The files of a commit. `epoch` is its time in seconds: the time of every file that is made of it (SOURCE_DATE_EPOCH)."""

    folder: Path
    revision: str
    epoch: int

    @property
    def environment(self) -> dict[str, str]:
        """The environment that passes that time to build tools."""
        return {"SOURCE_DATE_EPOCH": str(self.epoch)}


def of_last_commit(repository: Path, folder: Path) -> SourceTree:
    """Export the last commit into a folder.

    Raises:
        LabError: files are changed or new, and would be left out.
    """
    git = ("git", "-C", str(repository))
    if changed := run(*git, "status", "--porcelain").splitlines():
        names = ", ".join(line[3:] for line in changed[:5])
        raise LabError(f"a release is made of the last commit, and these files are not in it: {names}. Next: commit or stash them")
    shutil.rmtree(folder, ignore_errors=True)
    archive = places.made(folder.parent) / f"{folder.name}.tar"
    run(*git, "-c", "tar.umask=0022", "archive", f"--output={archive}", "HEAD")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    archive.unlink()
    revision, epoch = run(*git, "log", "-1", "--format=%H %ct").split()
    return SourceTree(folder, revision, int(epoch))
