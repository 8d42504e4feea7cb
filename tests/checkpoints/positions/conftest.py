"""A world of in-memory fakes for resets."""

from __future__ import annotations

import pytest
from resetting.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
