"""How many examples a random test draws: so many times the usual number."""

import os

TIMES = int(os.environ.get("SLUICE_SIM_TIMES", "1"))
"""7 in `make test-more`."""
