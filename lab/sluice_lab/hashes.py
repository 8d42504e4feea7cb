"""`python -m sluice_lab.hashes`: writes the packages that the images install, with hashes of their archives, to constraints/hashes (`make hashes`).

The extras of pyproject.toml and the metadata of installed packages decide which packages. The file constraints/all.txt decides the versions, and
constraints/spark-*.txt where a line of Spark differs. The reports of pip for both processors list the archives. Maven resolves
consumer/image/jars/pom.xml for a line, and the result decides the jars. The Dockerfile installs nothing else. The origin of the archives is not
recorded.
"""

import hashlib
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sluice_checkpoints.names import counted
from sluice_lab import places
from sluice_lab.machine import spark_jars
from sluice_lab.machine.processes import run
from sluice_lab.steps import step

FOLDER = places.REPO / "constraints" / "hashes"
SPARK_LINES = ("4.1", "4.2", "4.3")
BUILD = ("pip>=25", "hatchling>=1.27")
PYTHON = "3.11"
PROCESSORS = ("x86_64", "aarch64")
GLIBC = range(36, 16, -1)  # from Debian 12's version down to those of older wheels
HEAD = "# Written by `make hashes`; the Dockerfile installs exactly this.\n"

Pins = dict[str, str]
Hashes = dict[str, set[str]]


def main() -> None:
    """Write all files."""
    known: Hashes = {}
    for name, pins in {"operator": versions("operator"), **{f"consumer-{line}": versions("consumer", line) for line in SPARK_LINES}}.items():
        with step(f"constraints/hashes/{name}.txt") as current:
            wanted = [f"{package}=={version}" for package, version in sorted(pins.items())]
            known |= archives([requirement for requirement in wanted if requirement not in known])
            written = write(FOLDER / f"{name}.txt", {requirement: known[requirement] for requirement in wanted})
            current.note(counted(written, "package"))
    for line in SPARK_LINES:
        with step(f"constraints/hashes/jars-{line}.txt") as current, tempfile.TemporaryDirectory() as folder:
            current.note(write_jars(FOLDER / f"jars-{line}.txt", spark_jars.resolve(line, Path(folder))))
    with step("constraints/hashes/build.txt"):
        write(FOLDER / "build.txt", of_report(report("--only-binary=:all:", f"--constraint={places.REPO / 'constraints/all.txt'}", *BUILD)))


def versions(extra: str, line: str | None = None) -> Pins:
    """Versions by name of all that an extra needs, on a line of Spark."""
    pins = constraints() | (constraints(f"constraints/spark-{line}.txt") if line else {})
    return {name: pins[name] for name in closure(extra_requirements(extra))}


def constraints(path: str = "constraints/all.txt") -> Pins:
    """The pinned versions, by name."""
    lines = (places.REPO / path).read_text().splitlines()
    pinned = (line.split("==") for line in lines if re.match(r"[\w.-]+==", line))
    return {canonicalize_name(name): version for name, version in pinned}


def write_jars(path: Path, folder: Path) -> str:
    """A list for `sha256sum --check`; says how many jars it has, and their size."""
    jars = sorted(folder.rglob("*.jar"))
    lines = (f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.relative_to(folder)}\n" for jar in jars)
    path.write_text(HEAD + "".join(lines))
    return f"{counted(len(jars), 'jar')}, {sum(jar.stat().st_size for jar in jars) // 10**6} MB"


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
