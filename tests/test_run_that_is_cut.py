"""A run of tests that is ended early has named the failures before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_lab import lanes

HERE = Path(__file__).parent
CONFTEST = """
import sys

import pytest

sys.path.append({here!r})

import failures_at_once


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    failures_at_once.register(config)
"""
TESTS = """
import os

import pytest


@pytest.fixture(scope="module")
def costly():
    print("a cluster is made")


def test_first():
    assert 1 == 2, "one is\\nnot two"


def test_second(costly):
    os._exit(0)
"""


def run(folder: Path, *options: str, **more: str) -> str:
    (folder / "conftest.py").write_text(CONFTEST.format(here=str(HERE)))
    (folder / "test_cut.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-s", "-rs", "-p", "no:cacheprovider", *options, str(folder)]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins would take most of the time
    return subprocess.run(command, check=False, cwd=folder, env=os.environ | alone | more, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")], ids=["one process", "several"])
def test_a_failure_is_named_before_the_run_ends(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The second test ends the process that runs it, as a limit of time would."""
    printed = run(tmp_path, *options)
    assert "FAILED test_cut.py::test_first (call, 0 s): AssertionError: one is not two assert 1 == 2" in printed
    assert [line for line in printed.splitlines() if lanes.FAILED.match(line)] == [line for line in printed.splitlines() if " s): " in line]
