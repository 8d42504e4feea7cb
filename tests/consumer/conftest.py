"""Makes `reading` and the other helpers of these tests importable by their names; tests have no package (importlib mode)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from reading.stream import Stream


@pytest.fixture
def stream() -> Stream:
    return Stream()
