"""Release notes are the section of a version in CHANGELOG.md."""

from __future__ import annotations

import datetime

import pytest

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.release import notes

TODAY = datetime.date(2026, 12, 1)
CHANGES = "# Changes\n\nHead.\n\n## Unreleased\n\n### Added\n\n* New.\n\n## 0.2.0 (2026-11-01)\n\n* Second.\n\n## [0.1.0] - 2026-10-01\n\n* First.\n"


@pytest.mark.parametrize(("version", "expected"), [("0.2.0", "* Second.\n"), ("0.1.0", "* First.\n")])
def test_notes_are_the_section_of_the_version(version: str, expected: str) -> None:
    assert notes.section(CHANGES, version) == expected


@pytest.mark.parametrize("changes", [CHANGES, f"{CHANGES}\n## 0.3.0\n\n"])
def test_a_version_with_no_or_an_empty_section_is_refused(changes: str) -> None:
    with pytest.raises(LabError, match=r"no section `## 0.3.0`.*make version VERSION=0.3.0"):
        notes.section(changes, "0.3.0")


def test_what_is_unreleased_becomes_the_section_of_a_version() -> None:
    written = notes.released(CHANGES, "0.3.0", TODAY)
    assert notes.section(written, "0.3.0") == "### Added\n\n* New.\n"
    assert notes.sections(written)["Unreleased"].strip() == ""
    assert written.replace("\n\n## 0.3.0 (2026-12-01)\n", "\n", 1) == CHANGES


def test_a_section_that_is_there_is_not_made_again() -> None:
    assert notes.released(CHANGES, "0.2.0", TODAY) == CHANGES


@pytest.mark.parametrize("changes", ["# Changes\n", "# Changes\n\n## Unreleased\n\n## 0.2.0\n\n* Second.\n"])
def test_a_version_of_nothing_is_refused(changes: str) -> None:
    with pytest.raises(LabError, match="`## Unreleased` is missing or empty"):
        notes.released(changes, "0.3.0", TODAY)


def test_the_changelog_can_be_released() -> None:
    assert any(text.strip() for text in notes.sections((places.REPO / "CHANGELOG.md").read_text()).values())
