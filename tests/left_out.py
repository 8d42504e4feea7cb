"""No test is left out unseen: neither by a lane that does not find its mark, nor on a machine of CI that lacks a part."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from sluice_lab.errors import LabError

HERE = Path(__file__).parent
FOUND_BY_MAKE = ("cluster", "slow")
"""Lanes with these read only files of tests that name the mark: `marked` in the Makefile."""


def unfound(items: Iterable[pytest.Item]) -> list[str]:
    """Tests that have a mark which their own file does not name as `make` looks for it, each with the mark."""
    marked = ((item, mark) for mark in FOUND_BY_MAKE for item in items if item.get_closest_marker(mark))
    return [f"{item.nodeid}: write pytest.mark.{mark} in that file" for item, mark in marked if not _names(item.path, mark)]


@cache
def _names(path: Path, mark: str) -> bool:
    return path.is_relative_to(HERE) and path.name.startswith("test_") and bool(re.search(rf"mark\.{mark}\b", path.read_text()))


def judged(report: pytest.TestReport, call: pytest.CallInfo[None]) -> pytest.TestReport:
    """In CI, a test that is skipped because a part could not be made or started has failed. Elsewhere the summary names what was not run."""
    if os.environ.get("CI") and report.skipped and call.excinfo is not None and isinstance(call.excinfo.value.__context__, LabError):
        report.outcome = "failed"
        report.longrepr = f"{call.excinfo.value}\nCI is set, so this machine has to have it; without CI the test would be skipped."
    return report
