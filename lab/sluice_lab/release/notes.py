"""Release notes: the section of a version in CHANGELOG.md, whose newest changes stand under `## Unreleased`."""

from __future__ import annotations

import datetime
import re

from sluice_lab.errors import LabError

UNRELEASED = "Unreleased"
_SECTION = re.compile(r"(?m)^## +\[?(?P<name>[^\]\s]+)\]?(?P<rest>.*)$")


def section(changes: str, version: str) -> str:
    """What CHANGELOG.md says of a version, without its heading.

    Raises:
        LabError: it says nothing.
    """
    text = sections(changes).get(version, "").strip()
    if not text:
        raise LabError(
            f"CHANGELOG.md has no section `## {version}`, so the release would have no notes. Next: make version VERSION={version}, "
            f"which gives the text under `## {UNRELEASED}` that heading, and commit it"
        )
    return f"{text}\n"


def sections(changes: str) -> dict[str, str]:
    """The text of each section, by the first word of its heading."""
    headings = list(_SECTION.finditer(changes))
    ends = [*(heading.start() for heading in headings), len(changes)][1:]
    return {heading["name"]: changes[heading.end() : end] for heading, end in zip(headings, ends, strict=True)}


def released(changes: str, version: str, today: datetime.date) -> str:
    """The file with what is unreleased as the section of a version, under an empty `## Unreleased`. A section that is there stays as it is.

    Raises:
        LabError: nothing is unreleased.
    """
    found = sections(changes)
    if version in found:
        return changes
    if not found.get(UNRELEASED, "").strip():
        raise LabError(f"CHANGELOG.md: `## {UNRELEASED}` is missing or empty, so {version} has no notes. Next: write what changed there")
    heading = f"## {UNRELEASED}\n\n## {version} ({today.isoformat()})\n"
    return re.sub(rf"(?m)^## +{UNRELEASED}[^\n]*\n", heading, changes, count=1)
