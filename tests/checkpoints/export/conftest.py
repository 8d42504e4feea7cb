"""A world of in-memory fakes for exports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # `exporting`: tests have no packages (importlib mode)

from exporting.bench import Bench

from sluice_checkpoints.formats.detect import WRITERS


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture(params=list(WRITERS))
def each(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)
