"""Makes the simulation importable as `steering`: tests have no packages (importlib mode)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
