"""Makes helpers of the tests of consumer and operator importable by their own names (importlib mode: no packages)."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent)]
sys.path += [str(TESTS / folder) for folder in ("operator", "sim/operator", "consumer")]
