"""Contract tests run beside emulated AWS."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def signed_in(credentials: None) -> None:
    """Whatever asks for credentials finds some."""
