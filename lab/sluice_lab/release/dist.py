"""The folder of a release: its checksums, and what it is a release of. Whoever downloads a part of it checks it with `sha256sum --check`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from sluice_lab.errors import LabError
from sluice_lab.release import oci

SUMS, RELEASE = "SHA256SUMS", "release.json"


@dataclass(frozen=True)
class Release:
    """What a folder is a release of. `registry` is where its chart and install.yaml expect the images; `untried` says what was not built."""

    version: str
    revision: str
    epoch: int
    registry: str
    untried: list[str]


def write(folder: Path, release: Release) -> None:
    """Write release.json and the checksums of all files in the folder."""
    (folder / RELEASE).write_text(json.dumps(asdict(release), indent=2) + "\n")
    files = sorted(path.name for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    (folder / SUMS).write_text("".join(f"{oci.sha256(folder / name)}  {name}\n" for name in files))


def read(folder: Path) -> Release:
    """What a folder is a release of.

    Raises:
        LabError: it is none, or a file is not as it was made.
    """
    if not (folder / RELEASE).is_file() or not (folder / SUMS).is_file():
        raise LabError(f"{folder} is not a release. Next: make release VERSION=…")
    for line in (folder / SUMS).read_text().splitlines():
        wanted, _, name = line.partition("  ")
        path = folder / name
        if not path.is_file() or oci.sha256(path) != wanted:
            raise LabError(f"{path} is missing, or not as `make release` made it: {SUMS} has another checksum. Next: make release again")
    return Release(**json.loads((folder / RELEASE).read_text()))
