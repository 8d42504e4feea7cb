"""`python -m sluice_lab.hashes`: writes the packages that the images install, with hashes of their archives, to hashes/*.txt (`make hashes`).

The extras of pyproject.toml and the metadata of installed packages decide which packages. constraints.txt decides the versions. pip's reports for
both processors list the archives. The Dockerfile installs nothing else. The origin of the archives is not recorded.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sluice_lab import places
from sluice_lab.machine.processes import run
from sluice_lab.steps import step

FOLDER = places.REPO / "hashes"
EXTRAS = ("operator", "consumer")
BUILD = ("pip>=25", "hatchling>=1.27")
PYTHON = "3.11"
PROCESSORS = ("x86_64", "aarch64")
GLIBC = range(36, 16, -1)  # from Debian 12's version down to those of older wheels
HEAD = "# Written by `make hashes`; the Dockerfile installs exactly this.\n"

Pins = dict[str, str]
Hashes = dict[str, set[str]]


def main() -> None:
    """Write all three files."""
    pins = constraints()
    for extra in EXTRAS:
        with step(f"hashes/{extra}.txt") as current:
            needed = closure(extra_requirements(extra))
            found = archives([f"{name}=={pins[name]}" for name in sorted(needed)])
            written = write(FOLDER / f"{extra}.txt", found)
            current.note(f"{written} packages")
    with step("hashes/build.txt"):
        write(FOLDER / "build.txt", of_report(report("--only-binary=:all:", f"--constraint={places.REPO / 'constraints.txt'}", *BUILD)))


def constraints() -> Pins:
    """The pinned versions, by name."""
    lines = (places.REPO / "constraints.txt").read_text().splitlines()
    pinned = (line.split("==") for line in lines if re.match(r"[\w.-]+==", line))
    return {canonicalize_name(name): version for name, version in pinned}


def extra_requirements(extra: str) -> list[str]:
    """The requirements of an extra in pyproject.toml."""
    project = tomllib.loads((places.REPO / "pyproject.toml").read_text())["project"]
    found: list[str] = project["optional-dependencies"][extra]
    return found


def closure(wanted: Iterable[str]) -> set[str]:
    """Names of these requirements and of their dependencies, on Linux with the images' Python."""
    found: set[str] = set()
    waiting = [(Requirement(text), frozenset[str]()) for text in wanted]
    while waiting:
        requirement, of_extras = waiting.pop()
        name = canonicalize_name(requirement.name)
        if not _applies(requirement, of_extras):
            continue
        if name not in found or requirement.extras:
            found.add(name)
            waiting += [(Requirement(text), frozenset(requirement.extras)) for text in requires(name) or ()]
    return found


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    here = {"python_version": PYTHON, "python_full_version": f"{PYTHON}.2", "sys_platform": "linux", "platform_system": "Linux"}
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**here, "extra": extra}) for extra in ("", *extras))


def archives(pinned: list[str]) -> Hashes:
    """The archives that pip would use on any of the processors, by requirement."""
    found: Hashes = {}
    for processor in PROCESSORS:
        platforms = [f"--platform=manylinux_2_{minor}_{processor}" for minor in GLIBC]
        options = ("--no-deps", f"--python-version={PYTHON}", "--implementation=cp", *platforms, f"--platform=manylinux2014_{processor}")
        for requirement, hashes in of_report(report(*options, *pinned)).items():
            found.setdefault(requirement, set()).update(hashes)
    return found


def report(*arguments: str) -> dict[str, Any]:
    """Pip's report of what it would install."""
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", f"--target={FOLDER}", "--report=-", *arguments)
    found: dict[str, Any] = json.loads(run(*command))
    return found


def of_report(found: dict[str, Any]) -> Hashes:
    """The hashes of the archives in a report, by requirement."""
    return {
        f"{canonicalize_name(item['metadata']['name'])}=={item['metadata']['version']}": {item["download_info"]["archive_info"]["hashes"]["sha256"]}
        for item in found["install"]
    }


def write(path: Path, found: Hashes) -> int:
    """Write a requirements file for `pip install --require-hashes`; returns its number of packages."""
    lines = (" \\\n    ".join([requirement, *(f"--hash=sha256:{each}" for each in sorted(found[requirement]))]) for requirement in sorted(found))
    places.made(path.parent)
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return len(found)


if __name__ == "__main__":
    main()
