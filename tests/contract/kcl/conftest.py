"""The real Kinesis Client Library, from Maven Central."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sluice_lab.machine import kcl_jars

sys.path.append(str(Path(__file__).parent))  # tests have no packages (importlib mode)


@pytest.fixture(scope="session")
def jars() -> Path:
    return kcl_jars.fetched()
