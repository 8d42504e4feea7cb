"""`python -m sluice_lab.hashes`: writes what the images install, with the hash of each archive, to hashes/*.txt (`make hashes`).

Which packages: what the extras of pyproject.toml need, as the installed packages say. Which versions: constraints.txt. Which archives: pip's own
reports for both processors. The Dockerfile installs nothing else. The archives' origin is not recorded.
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
GLIBC = range(36, 16, -1)  # of Debian 12, and what older wheels ask for
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
    """Versions by name."""
    lines = (places.REPO / "constraints.txt").read_text().splitlines()
    pinned = (line.split("==") for line in lines if re.match(r"[\w.-]+==", line))
    return {canonicalize_name(name): version for name, version in pinned}


def extra_requirements(extra: str) -> list[str]:
    """What pyproject.toml asks for."""
    project = tomllib.loads((places.REPO / "pyproject.toml").read_text())["project"]
    found: list[str] = project["optional-dependencies"][extra]
    return found


def closure(wanted: Iterable[str]) -> set[str]:
    """Names of these and of all that they need on Linux with the images' Python."""
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
    """By requirement, what pip would take on any of the processors."""
    found: Hashes = {}
    for processor in PROCESSORS:
        platforms = [f"--platform=manylinux_2_{minor}_{processor}" for minor in GLIBC]
        options = ("--no-deps", f"--python-version={PYTHON}", "--implementation=cp", *platforms, f"--platform=manylinux2014_{processor}")
        for requirement, hashes in of_report(report(*options, *pinned)).items():
            found.setdefault(requirement, set()).update(hashes)
    return found


def report(*arguments: str) -> dict[str, Any]:
    """What pip would install."""
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", f"--target={FOLDER}", "--report=-", *arguments)
    found: dict[str, Any] = json.loads(run(*command))
    return found


def of_report(said: dict[str, Any]) -> Hashes:
    """Requirement and hashes of each archive."""
    return {
        f"{canonicalize_name(item['metadata']['name'])}=={item['metadata']['version']}": {item["download_info"]["archive_info"]["hashes"]["sha256"]}
        for item in said["install"]
    }


def write(path: Path, found: Hashes) -> int:
    """A requirements file for `pip install --require-hashes`; how many packages are in it."""
    lines = (" \\\n    ".join([requirement, *(f"--hash=sha256:{each}" for each in sorted(found[requirement]))]) for requirement in sorted(found))
    places.made(path.parent)
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return len(found)


if __name__ == "__main__":
    main()
