"""What is in an image: Debian's packages, Python's distributions, jars. Each is read from what its own installer wrote."""

from __future__ import annotations

import email
import hashlib
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import PurePosixPath
from urllib.parse import quote

from packaging.utils import canonicalize_name

DPKG = "var/lib/dpkg/status"
METADATA = re.compile(r"\.dist-info/METADATA$")
JAR = re.compile(r"^(?P<name>.+?)(?:-(?P<version>\d.*))?\.jar$")
LISTED = re.compile(r"(?m)^(?P<sha256>[0-9a-f]{64})  (?P<group>\S+)/(?P<name>[^/\s]+)/(?P<version>[^/\s]+)/[^/\s]+\.jar$")
POM = re.compile(r"^META-INF/maven/[^/]+/[^/]+/pom\.properties$")


@dataclass(frozen=True, order=True)
class Component:
    """A package in an image. `purl` names it for scanners (package URL), and is empty if nothing says where it comes from."""

    name: str
    version: str
    purl: str = ""
    sha256: str = ""
    license: str = ""  # an SPDX expression, if its own metadata has one


def wanted(path: str) -> bool:
    """Whether a file of an image says what is installed."""
    return path == DPKG or path.endswith(".jar") or METADATA.search(path) is not None


def listed(jars: str) -> dict[str, Component]:
    """The jars of a list that a build checks (constraints/hashes/jars-*.txt), by their SHA-256."""
    return {
        found["sha256"]: _artifact(found["group"].replace("/", "."), found["name"], found["version"], found["sha256"])
        for found in LISTED.finditer(jars)
    }


def found(files: Mapping[str, bytes], known: Mapping[str, Component]) -> list[Component]:
    """The components that these files of an image list, sorted; jars whose SHA-256 is known are what the list says.

    What a jar has shaded into itself is not looked for.
    """
    each: set[Component] = set()
    for path, content in files.items():
        if path == DPKG:
            each |= set(debian(content.decode()))
        elif METADATA.search(path):
            each.add(python(content.decode()))
        else:
            each.add(known.get(hashlib.sha256(content).hexdigest()) or jar(PurePosixPath(path).name, content))
    return sorted(each)


def debian(status: str) -> Iterator[Component]:
    """The installed packages of dpkg's status file."""
    for text in status.strip().split("\n\n"):
        stanza = email.message_from_string(text)
        if stanza.get("Status", "").endswith(" installed"):
            name, version = stanza["Package"], stanza["Version"]
            purl = f"pkg:deb/debian/{name}@{quote(version, safe='')}?arch={stanza['Architecture']}"
            yield Component(name, version, purl)


def python(metadata: str) -> Component:
    """A distribution, of its METADATA."""
    found: Message = email.message_from_string(metadata)
    name = canonicalize_name(found["Name"])
    return Component(name, found["Version"], pypi(name, found["Version"]), license=found.get("License-Expression", ""))


def pypi(name: str, version: str) -> str:
    """The package URL of a distribution."""
    return f"pkg:pypi/{canonicalize_name(name)}@{quote(version, safe='')}"


def jar(file: str, content: bytes) -> Component:
    """A jar: by Maven's own record in it that fits the name of the file, else by that name."""
    named = JAR.match(file)
    name, version = (named["name"], named["version"] or "") if named else (file, "")
    digest = hashlib.sha256(content).hexdigest()
    for artifact in _maven(content):
        if artifact.get("artifactId") == name and "groupId" in artifact:
            return _artifact(artifact["groupId"], name, artifact.get("version", version), digest)
    return Component(name, version, sha256=digest)


def _artifact(group: str, name: str, version: str, sha256: str) -> Component:
    return Component(f"{group}:{name}", version, f"pkg:maven/{group}/{name}@{quote(version, safe='')}", sha256)


def _maven(content: bytes) -> Iterator[dict[str, str]]:
    """The properties of each artifact that Maven says is in a jar."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in filter(POM.match, archive.namelist()):
            lines = archive.read(name).decode(errors="replace").splitlines()
            yield dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
