"""Makes helpers of these tests importable by their own names, and the simulation of the operator as `steering` (importlib mode: no packages)."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "sim" / "operator")]
