"""Paths: the repository, and the only folder outside git that the lab writes to."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
KIND = REPO / "lab" / "kind"


def work() -> Path:
    """The folder for downloads, logs and process records: `SLUICE_WORK`, or `.work` in the repository."""
    return made(Path(os.environ.get("SLUICE_WORK", REPO / ".work")).resolve())


def made(folder: Path) -> Path:
    """Create the folder if it does not exist; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def emptied(folder: Path) -> Path:
    """Create the folder, without anything from before; returns it."""
    shutil.rmtree(folder, ignore_errors=True)
    return made(folder)


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, because parallel test processes share downloads."""
    made(path.parent)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
