"""The lanes of `make test` and `make test-more`, run with programs that only say how they were called: what one failure leaves of the rest."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """#!/usr/bin/env bash
words="$(basename "$0") $*"
echo "$words" >>"$CALLED"
case "$words" in $FAILS) exit 1;; esac
"""
CALLS = {  # of each target, a part of the words of each call that runs tests
    "test": ("test/tests.xml", "test/cluster.xml", "spark_lines one"),
    "test-more": ("test-more/tests.xml", "spark_lines rest", "cluster-more.xml", "test-more/cluster.xml", "cluster-timed.xml"),
}
LAST = {target: f"python -m sluice_lab.durations {target}" for target in CALLS}


def run(folder: Path, target: str, fails: str) -> tuple[int, list[str]]:
    """Its exit code and the calls, in order; calls that fit a pattern of the shell fail."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("python", "pytest", "ruff", "lint-imports"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    settings = {"SLUICE_WORK": str(folder / "work"), "CALLED": str(folder / "called"), "FAILS": fails, "CI": "yes"}
    (folder / "work").mkdir()
    command = ["make", "--old-file=.venv/installed", f"BIN={programs}", target]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(command, cwd=ROOT, env=clean | settings, check=False, capture_output=True, text=True, timeout=300)
    return done.returncode, (folder / "called").read_text().splitlines()


@pytest.mark.parametrize(("target", "failed"), [(target, part) for target, parts in CALLS.items() for part in parts])
def test_a_run_that_fails_fails_the_whole_and_the_others_are_run_and_timed(tmp_path: Path, target: str, failed: str) -> None:
    """Whichever it is: one change may break several things."""
    code, calls = run(tmp_path, target, f"*{failed}*")
    assert code != 0
    assert all(any(part in call for call in calls) for part in CALLS[target])
    assert calls[-1] == LAST[target]


@pytest.mark.parametrize("target", CALLS)
def test_a_target_without_a_failure_runs_each_once(tmp_path: Path, target: str) -> None:
    """Its exit code is 0."""
    code, calls = run(tmp_path, target, "nothing")
    assert code == 0
    assert [sum(part in call for call in calls) for part in CALLS[target]] == [1] * len(CALLS[target])
    assert calls[-1] == LAST[target]


def test_in_ci_what_cannot_be_built_fails_before_any_test(tmp_path: Path) -> None:
    """And `.ci/run` is CI."""
    code, calls = run(tmp_path, "test", "*sluice_lab build*")
    assert code != 0
    assert not [call for call in calls if call.startswith("pytest")]
    assert "export CI=" in (ROOT / ".ci" / "run").read_text()
