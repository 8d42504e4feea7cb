"""What Spark's scheduler makes of the number of executors that it is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "scaled_executors.py"


@pytest.mark.spark
@pytest.mark.slow
def test_an_executor_that_dies_after_a_scale_down_is_replaced() -> None:
    """Spark's own adjustment takes "nobody has asked" for none. After it a lost executor would never be replaced."""
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False, timeout=240)
    assert done.stdout.splitlines() == ["two came: True", "one stayed: True", "another came: True"], done.stderr[-3000:]
