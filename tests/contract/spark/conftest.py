"""Fixtures are in `conftest_spark`, which tests import too; they have no package (importlib mode)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from conftest_spark import aws, slow_stream
from poison_program import stream

__all__ = ["aws", "slow_stream", "stream"]
