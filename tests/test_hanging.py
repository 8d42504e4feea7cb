"""A test that never ends: what a run of all tests does with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ALONE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins would take most of the time
LIMIT = "faulthandler_timeout=3"
FIRST = """
import threading

import pytest


@pytest.mark.parametrize("number", range(4))
def test_first(number: int) -> None:
    if number == 1:
        threading.Event().wait()
"""
SECOND = """
def test_second() -> None:
    pass
"""
HOOK = """
import sys

sys.path.append({here!r})

from side_by_side import scheduler


def pytest_xdist_make_scheduler(config, log):
    return scheduler(config, log)
"""


def test_a_test_that_hangs_fails_with_its_stack_and_all_others_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(HOOK.format(here=str(HERE)))
    (tmp_path / "test_first.py").write_text(FIRST)
    (tmp_path / "test_second.py").write_text(SECOND)
    options = ["-p", "xdist", "-n", "2", "--dist", "loadscope", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
    limits = ["-o", LIMIT, "-o", "faulthandler_exit_on_timeout=true"]
    command = [sys.executable, "-m", "pytest", *options, *limits, str(tmp_path)]
    run = subprocess.run(command, check=False, cwd=tmp_path, env=ALONE, capture_output=True, text=True, timeout=120)
    assert "1 failed, 4 passed" in run.stdout
    assert "crashed while running 'test_first.py::test_first[1]'" in run.stdout
    assert "in test_first" in run.stderr


def test_every_run_has_a_limit_for_a_test(pytestconfig: object) -> None:
    assert float(pytestconfig.getini("faulthandler_timeout")) >= 900  # type: ignore[attr-defined]
    assert pytestconfig.getini("faulthandler_exit_on_timeout") is True  # type: ignore[attr-defined]
