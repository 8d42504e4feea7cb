"""Makes the simulated world importable by its own name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
