"""No test is left out unseen: neither by a lane that does not find its mark, nor on a machine that lacks a part."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from sluice_lab.errors import MissingPartError

HERE = Path(__file__).parent
SUSPECTS = tomllib.loads((HERE / "suspects.toml").read_text())
FOUND_BY_MAKE = ("built", "cluster", "slow")
"""Lanes with these read only files of tests that name the mark (lab/sluice_lab/lanes.py)."""


def unfound(items: Iterable[pytest.Item]) -> list[str]:
    """Tests that have a mark which their own file does not name as `make` looks for it, each with the mark."""
    marked = ((item, mark) for mark in FOUND_BY_MAKE for item in items if item.get_closest_marker(mark))
    return [f"{item.nodeid}: write pytest.mark.{mark} in that file" for item, mark in marked if not _names(item.path, mark)]


def suspect(nodeid: str) -> bool:
    return nodeid in SUSPECTS or nodeid.partition("[")[0] in SUSPECTS


@cache
def _names(path: Path, mark: str) -> bool:
    return path.is_relative_to(HERE) and path.name.startswith("test_") and bool(re.search(rf"mark\.{mark}\b", path.read_text()))


def judged(report: pytest.TestReport, call: pytest.CallInfo[None]) -> pytest.TestReport:
    """A test that lacks a part is skipped with the reason. It fails in CI, and where SLUICE_COMPLETE is set.

    `jars` is where Spark has the image's jars, so a test that finds one missing fails.
    """
    if call.excinfo is not None and isinstance(call.excinfo.value, MissingPartError):
        if os.environ.get("CI") or os.environ.get("SLUICE_COMPLETE"):
            report.longrepr = f"{call.excinfo.value}\nThis run leaves nothing out, so this machine has to have it."
        else:
            report.outcome, report.longrepr = "skipped", (str(report.location[0]), report.location[1] or 0, f"not run: {call.excinfo.value}")
    elif report.skipped and os.environ.get("SLUICE_COMPLETE") == "jars" and re.search("this Spark.* has no ", str(report.longrepr)):
        report.outcome = "failed"
    return report
