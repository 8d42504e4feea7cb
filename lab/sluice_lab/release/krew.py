"""`kubectl sluice` for krew: an archive a platform, that needs a Python on the PATH and nothing else, and the plugin's manifest.

A zipapp cannot do it: two packages are compiled (NATIVE), and Python loads no library out of an archive.
Their files are named by platform and version of Python, so one folder holds those of all versions.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sluice_lab import hashes
from sluice_lab.machine.processes import run
from sluice_lab.release import archives, oci
from sluice_lab.release.source import SourceTree

Json = dict[str, Any]
EXTRAS = ("kubectl", "checkpoints")
NATIVE = ("orjson", "pydantic-core")
UNUSED = {"aiohttp", "aiohttp-retry", "aiosignal", "aiohappyeyeballs", "attrs", "frozenlist", "multidict", "propcache", "yarl"}
"""What `kubernetes` needs for its asynchronous client alone."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PROGRAM, MANIFEST, FOLDER = "kubectl-sluice", "krew-sluice.yaml", "lib"
START = f"""#!/usr/bin/env python3
# krew links to this file: the packages are beside the file itself.
import os
import sys

if not ({PYTHONS[0].replace(".", ", ")}) <= sys.version_info[:2] <= ({PYTHONS[-1].replace(".", ", ")}):
    sys.exit("kubectl sluice needs python3 to be Python {PYTHONS[0]} to {PYTHONS[-1]}, and it is %d.%d" % sys.version_info[:2])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "{FOLDER}"))
from sluice_kubectl.program import main

main()
"""


@dataclass(frozen=True)
class Platform:
    """As krew names it, and the tags of its wheels."""

    os: str
    arch: str
    tags: tuple[str, ...]

    @property
    def name(self) -> str:
        """`linux-amd64`."""
        return f"{self.os}-{self.arch}"


PLATFORMS = (
    Platform("linux", "amd64", ("manylinux_2_28_x86_64", "manylinux2014_x86_64")),
    Platform("linux", "arm64", ("manylinux_2_28_aarch64", "manylinux2014_aarch64")),
    Platform("darwin", "amd64", ("macosx_11_0_x86_64",)),
    Platform("darwin", "arm64", ("macosx_11_0_arm64",)),
)


def pins() -> dict[str, str]:
    """Versions of what the archive holds, by name: those that are tested."""
    found = {name: version for extra in EXTRAS for name, version in hashes.versions(extra).items()}
    return {name: version for name, version in sorted(found.items()) if name not in UNUSED}


def archive_name(version: str, platform: Platform) -> str:
    """Of an archive's file."""
    return f"{PROGRAM}-{version}-{platform.name}.tar.gz"


@dataclass(frozen=True)
class ArchiveTargets:
    """What the archives are for."""

    platforms: tuple[Platform, ...] = PLATFORMS
    pythons: tuple[str, ...] = PYTHONS


ALL = ArchiveTargets()


def build(source: SourceTree, version: str, wheel: Path, out: Path, targets: ArchiveTargets = ALL) -> list[Path]:
    """Write the archives; the same versions give the same bytes.

    Raises:
        CommandFailedError: the registry of Python packages does not answer, or has no wheel of a version for a platform.
    """
    made = []
    with tempfile.TemporaryDirectory() as temporary:
        shared = Path(temporary) / "shared"
        _shared(wheel, shared)
        for platform in targets.platforms:
            folder = Path(temporary) / platform.name
            shutil.copytree(shared, folder / FOLDER)
            for python in targets.pythons:
                _natives(platform, python, folder / FOLDER)
            (folder / PROGRAM).write_text(START)
            (folder / PROGRAM).chmod(archives.EXECUTABLE)
            shutil.copyfile(source.folder / "LICENSE", folder / "LICENSE")
            made.append(out / archive_name(version, platform))
            archives.pack(folder, made[-1], source.epoch, compressed=True)
    return made


def _shared(wheel: Path, folder: Path) -> None:
    """What is the same on each platform: Python's own files, Sluice's among them. PyYAML and charset-normalizer work without their libraries."""
    wanted = [f"{name}=={version}" for name, version in pins().items() if name not in NATIVE]
    _install(folder, PLATFORMS[0], PYTHONS[0], [*wanted, str(wheel)])
    for library in folder.rglob("*.so"):
        library.unlink()


def _natives(platform: Platform, python: str, folder: Path) -> None:
    """Adds the compiled packages for one Python."""
    with tempfile.TemporaryDirectory() as cell:
        _install(Path(cell), platform, python, [f"{name}=={pins()[name]}" for name in NATIVE])
        shutil.copytree(cell, folder, dirs_exist_ok=True)


def _install(folder: Path, platform: Platform, python: str, wanted: Iterable[str]) -> None:
    tags = [f"--platform={tag}" for tag in platform.tags]
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--only-binary=:all:", f"--python-version={python}")
    run(sys.executable, "-m", "pip", "install", *options, *tags, f"--target={folder}", *wanted)
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for name in ("RECORD", "REQUESTED", "INSTALLER", "direct_url.json"):  # they name this machine's paths
        for file in folder.glob(f"*.dist-info/{name}"):
            file.unlink()


def manifest(version: str, downloads: str, built: Iterable[Path]) -> str:
    """The plugin's manifest, for krew: `downloads` is the address of the folder that the archives are in."""
    by_name = {path.name: path for path in built}
    platforms = [
        {
            "selector": {"matchLabels": {"os": platform.os, "arch": platform.arch}},
            "uri": f"{downloads}/{archive_name(version, platform)}",
            "sha256": oci.sha256(by_name[archive_name(version, platform)]),
            "bin": PROGRAM,
        }
        for platform in PLATFORMS
        if archive_name(version, platform) in by_name
    ]
    body = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "sluice"},
        "spec": {
            "version": f"v{version}",
            "homepage": downloads,
            "shortDescription": "See and steer Kinesis consumers of Sluice",
            "description": "A fleet of KinesisConsumers on one screen: status, lag, shards, events, logs;\n"
            "restart, pause, drain, retry, force, redrive; and a report for support.\n",
            "caveats": f"python3 on the PATH has to be Python {PYTHONS[0]} to {PYTHONS[-1]}.\n",
            "platforms": platforms,
        },
    }
    return yaml.safe_dump(body, sort_keys=False, width=150)
