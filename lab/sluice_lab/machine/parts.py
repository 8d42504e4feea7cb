"""Parts: what is built or fetched once for all checkouts of a user. Each is a folder that is named by a hash of its inputs.

They are below `$XDG_CACHE_HOME/sluice-lab`, or `~/.cache/sluice-lab`; `SLUICE_PARTS` names another folder. Of each part the two that were used last
stay. With `SLUICE_BUILDS=no` nothing is built: a missing part is an error. The tests set it.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import MissingPartError

KEPT = 2
BUILDS = "SLUICE_BUILDS"


def folder() -> Path:
    """The folder of all parts."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SLUICE_PARTS") or cache / "sluice-lab").resolve()


def place(name: str, inputs: object) -> Path:
    """Where a part is, once it is there."""
    return folder() / name / hashlib.sha256(repr(inputs).encode()).hexdigest()[:16]


def part(name: str, inputs: object, make: Callable[[Path], object]) -> Path:
    """The folder of a part. If it is not there, `make` fills an empty folder that becomes it; so it must not contain its own path.

    Raises:
        MissingPartError: it is not there, and this run builds nothing.
    """
    found = place(name, inputs)
    if not found.is_dir():
        may_build(name)
        home = found.parent
        with places.lock(home / "lock"):
            if not found.is_dir():
                make(places.emptied(home / "new"))
                _prune(home)
                (home / "new").rename(found)
    os.utime(found)
    return found


def _prune(home: Path) -> None:
    """Before one is added. A part that goes is renamed first, so none is there by halves."""
    used = sorted((each for each in home.iterdir() if each.is_dir() and each.name not in {"new", "old"}), key=lambda each: -each.stat().st_mtime)
    for older in used[KEPT - 1 :]:
        older.rename(places.emptied(home / "old") / older.name)
    shutil.rmtree(home / "old", ignore_errors=True)


def may_build(what: str) -> None:
    """Call it before a part, an image or a package of the system is made.

    Raises:
        MissingPartError: this run builds nothing.
    """
    if os.environ.get(BUILDS) == "no":
        raise MissingPartError(
            f"{what} is missing, and tests build nothing: `python -m sluice_lab build` builds it (`build gitops` Argo CD and Flux)"
        )


def digest(files: Iterable[Path], root: Path) -> str:
    """A hash of files: of their names below a folder, whether they are executable, and what they hold."""
    hashed = hashlib.sha256()
    for path in sorted(files):
        hashed.update(f"{path.relative_to(root)}\0{path.stat().st_mode & 0o111}\0".encode())
        hashed.update(hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()[:12]
