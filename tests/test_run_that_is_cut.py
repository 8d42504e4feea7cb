"""A run of tests on a busy machine: ended early, or with an end in time, or with a limit of Spark's that only busy cores reach."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CONFTEST = """
import sys

import pytest

sys.path.append({here!r})

import failures_at_once
import time_left


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    failures_at_once.register(config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    time_left.skip_if_over()
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


BUSY = """
tried = []


def test_connects():
    tried.append(1)
    assert len(tried) > 1, "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"


def test_is_wrong():
    tried.append(1)
    assert len(tried) > 9
"""


def run(folder: Path, *options: str, **more: str) -> str:
    """What pytest prints of these tests."""
    (folder / "conftest.py").write_text(CONFTEST.format(here=str(HERE)))
    (folder / "test_cut.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-s", "-rs", "-p", "no:cacheprovider", *options, str(folder)]
    environment = {**{name: value for name, value in os.environ.items() if name != "SLUICE_DEADLINE"}, **more}
    return subprocess.run(command, check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["one process", "several"])
def test_a_failure_is_named_before_the_run_ends(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The second test ends the process that runs it, as a limit of time would."""
    printed = run(tmp_path, *options)
    assert "FAILED test_cut.py::test_first (call, 0 s): AssertionError: one is not two assert 1 == 2" in printed
    (shown,) = re.findall(r"grep --line-buffered -E '(.+?)'", (HERE.parent / "Makefile").read_text())
    assert [line for line in printed.splitlines() if re.search(shown, line)] == [line for line in printed.splitlines() if " s): " in line]


def test_after_the_deadline_no_test_begins_and_each_is_named_as_not_run(tmp_path: Path) -> None:
    """Nor is anything made that it would need."""
    printed = run(tmp_path, SLUICE_DEADLINE=str(time.time() - 1))
    assert "2 skipped" in printed
    assert "SLUICE_DEADLINE was over" in printed
    assert "a cluster is made" not in printed


@pytest.mark.parametrize("deadline", ["", str(time.time() + 3600)], ids=["none", "in an hour"])
def test_before_the_deadline_all_tests_begin(tmp_path: Path, deadline: str) -> None:
    """An empty one is none."""
    assert "skipped" not in run(tmp_path, SLUICE_DEADLINE=deadline)


def test_only_what_spark_gave_no_time_to_connect_runs_again(tmp_path: Path) -> None:
    """Any other failure is one at once."""
    (tmp_path / "test_busy.py").write_text(BUSY)
    options = ["-c", str(HERE.parent / "pyproject.toml"), f"--rootdir={tmp_path}", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, "test_busy.py"]
    printed = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=300).stdout
    assert "1 failed, 1 passed, 1 rerun" in printed
    assert "FAILED test_busy.py::test_is_wrong - " in printed
    assert "FAILED test_busy.py::test_connects" not in printed
