"""The real Kinesis Client Library, from Maven Central."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import kcl_jars


@pytest.fixture(scope="session")
def jars() -> Path:
    """KCL and what it needs, from Maven Central."""
    try:
        return kcl_jars.cached(places.work())
    except LabError as error:
        pytest.skip(f"not run: KCL could not be had from Maven Central: {error}")
