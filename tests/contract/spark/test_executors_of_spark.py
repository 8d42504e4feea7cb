"""What Spark's scheduler makes of the number of executors that it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_consumer.spark import spark_home

PROGRAM = Path(__file__).parent / "scaled_executors.py"


@pytest.mark.spark
@pytest.mark.slow
def test_an_executor_that_dies_after_a_scale_down_is_replaced() -> None:
    """Spark's own adjustment takes "nobody has asked" for none. After it a lost executor would never be replaced."""
    home = os.environ | spark_home.lean(os.environ)
    done = subprocess.run([sys.executable, str(PROGRAM)], env=home, capture_output=True, text=True, check=False, timeout=240)
    assert done.stdout.splitlines() == ["two came: True", "one stayed: True", "another came: True"], done.stderr[-3000:]
