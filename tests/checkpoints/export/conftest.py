"""A world of in-memory fakes for exports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # `exporting`: tests have no packages (importlib mode)

from exporting.bench import Bench, Crash

from sluice_checkpoints.formats.detect import WRITERS


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def new_bench() -> Callable[..., Bench]:
    return Bench


@pytest.fixture(params=list(WRITERS))
def each(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


@pytest.fixture
def crash() -> type[BaseException]:
    return Crash
