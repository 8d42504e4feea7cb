"""Fixtures of the checks before a start."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # tests have no packages (importlib mode)

from conftest_checks import consumer, on_moto, tables

__all__ = ["consumer", "on_moto", "tables"]
