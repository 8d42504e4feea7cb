"""Makes `reading`, what these tests share, importable by its own name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from reading.stream import Stream


@pytest.fixture
def stream() -> Stream:
    """An empty stream of one shard."""
    return Stream()
