"""Makes the simulation importable as `simulation`: tests have no packages (importlib mode). The same schedules come in every process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _no_constants_of_other_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis draws constants of all modules that are loaded. In a process that shares tests with others, that changes derandomized schedules."""
    none = Constants()
    monkeypatch.setattr(providers, "_get_local_constants", lambda: none)
    providers.CONSTANTS_CACHE.cache.clear()
