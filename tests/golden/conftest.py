"""Makes `takeover`, what these tests share, importable by its own name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "consumer"))  # its encoder of aggregates
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def signed_in(credentials: None) -> None:
    """Whatever asks for credentials finds some."""
