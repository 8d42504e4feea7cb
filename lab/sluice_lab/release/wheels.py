"""Wheel and sdist. Hatchling makes them from the files alone; it takes the time from SOURCE_DATE_EPOCH."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from sluice_lab import places
from sluice_lab.machine.processes import run
from sluice_lab.release.source import SourceTree


@dataclass(frozen=True)
class Packages:
    """The two archives of Python's tools."""

    sdist: Path
    wheel: Path


def build(source: SourceTree, version: str, out: Path) -> Packages:
    """Write `sluice_kinesis-<version>.tar.gz` and `sluice_kinesis-<version>-py3-none-any.whl`. `version` is as Python's tools write it."""
    where = f"--directory={places.made(out).resolve()}"
    command = (sys.executable, "-m", "hatchling", "build", "--target=sdist", "--target=wheel", where)
    run(*command, cwd=source.folder, env=source.environment)
    return Packages(out / f"sluice_kinesis-{version}.tar.gz", out / f"sluice_kinesis-{version}-py3-none-any.whl")
