"""The real Kinesis Client Library, from Maven Central."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_lab.machine import kcl_jars


@pytest.fixture(scope="session")
def jars() -> Path:
    """KCL and what it needs, from Maven Central."""
    return kcl_jars.fetched()
