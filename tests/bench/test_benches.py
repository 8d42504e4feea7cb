"""The benches are run by hand and take minutes: here is only asked whether they still know the names they use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[2] / "bench"


@pytest.mark.slow
@pytest.mark.parametrize("bench", ["bench", "migration_speed", "operator_scale", "pool_fleet"])
def test_a_bench_can_be_imported(bench: str) -> None:
    """With all it imports; in a process of its own, for it changes no other test's modules."""
    done = subprocess.run([sys.executable, "-c", f"import {bench}"], cwd=BENCHES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
