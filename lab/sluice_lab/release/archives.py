"""Tar archives whose bytes depend on names and contents of files only: sorted, of nobody, at one time."""

from __future__ import annotations

import gzip
import tarfile
from contextlib import ExitStack
from pathlib import Path

EXECUTABLE, PLAIN = 0o755, 0o644


def pack(folder: Path, target: Path, epoch: int, *, compressed: bool = False) -> None:
    """Write the files of a folder, by their names below it. Links and empty folders are left out."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    with ExitStack() as stack:
        raw = stack.enter_context(target.open("wb"))
        output = stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=epoch)) if compressed else raw
        tar = stack.enter_context(tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT))
        for path in files:
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size, entry.mtime = path.stat().st_size, epoch
            entry.mode = EXECUTABLE if path.stat().st_mode & 0o100 else PLAIN
            with path.open("rb") as content:
                tar.addfile(entry, content)
