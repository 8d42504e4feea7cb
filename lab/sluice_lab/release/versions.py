"""The version: pyproject.toml has it. What repeats it is written by `make version`, and compared by tests.

A version is Semantic Versioning's `X.Y.Z`, or `X.Y.Z-rc.N` before it: Helm needs that form, and Python's tools take it, too.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path

from packaging.version import Version

from sluice_lab.errors import LabError
from sluice_lab.release import notes

VERSION = re.compile(r"\d+\.\d+\.\d+(-rc\.\d+)?")
PROJECT, CHART, CHANGES = "pyproject.toml", "charts/sluice/Chart.yaml", "CHANGELOG.md"
# Text before the version in examples and documents.
_IMAGES = ("registry.example/sluice-operator:", "registry.example/sluice-consumer:")
_BEFORE = (*_IMAGES, "VERSION=", "charts/sluice --version ", "Release ", "targetRevision: ")
NAMED = re.compile(f"(?:{'|'.join(f'(?<={re.escape(words)})' for words in _BEFORE)})" + r"\d+\.\d+\.\d+(?:-rc\.\d+)?")
_DECLARED = re.compile(r'(?m)^(version = ")[^"]+(")')
_CHART = re.compile(r"(?m)^((?:version|appVersion): ).+$")


def declared(folder: Path) -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads((folder / PROJECT).read_text())["project"]["version"])


def of_python(version: str) -> str:
    """The same version as Python's tools write it: `0.2.0rc1` of `0.2.0-rc.1`."""
    return str(Version(version))


def check(folder: Path, version: str) -> None:
    """Refuse a text that is not a version, or not the one that these sources have.

    Raises:
        LabError: the message says what to do.
    """
    if not VERSION.fullmatch(version):
        raise LabError(f"VERSION: {version!r} is neither X.Y.Z nor X.Y.Z-rc.N")
    found = {PROJECT: {declared(folder)}, CHART: set(in_chart(folder))}
    wrong = [f"{name} says {', '.join(sorted(said))}" for name, said in found.items() if said != {version}]
    if wrong:
        raise LabError(
            f"VERSION: these sources are not {version}: {'; '.join(wrong)}. Next: make version VERSION={version}, and commit what it wrote"
        )
    notes.section((folder / CHANGES).read_text(), version)


def in_chart(folder: Path) -> list[str]:
    """Version and appVersion of the chart."""
    return [line.partition(": ")[2] for line in (folder / CHART).read_text().splitlines() if _CHART.match(line)]


def write(folder: Path, version: str, today: datetime.date, mentions: list[Path]) -> list[str]:
    """Write a version wherever it is repeated; returns the names of changed files. Nothing is committed.

    Raises:
        LabError: it is not a version, or CHANGELOG.md has nothing to release.
    """
    if not VERSION.fullmatch(version):
        raise LabError(f"VERSION: {version!r} is neither X.Y.Z nor X.Y.Z-rc.N")
    changes = (folder / CHANGES).read_text()
    new = {
        folder / CHANGES: notes.released(changes, version, today),
        folder / PROJECT: _DECLARED.sub(rf"\g<1>{version}\g<2>", (folder / PROJECT).read_text(), count=1),
        folder / CHART: _CHART.sub(rf"\g<1>{version}", (folder / CHART).read_text()),
        **{path: NAMED.sub(version, path.read_text()) for path in mentions},
    }
    changed = {path: text for path, text in new.items() if text != path.read_text()}
    for path, text in changed.items():
        path.write_text(text)
    return sorted(str(path.relative_to(folder)) for path in changed)
