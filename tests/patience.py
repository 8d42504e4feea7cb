"""How long a test waits for a whole program until it fails: never what the test is about."""

import os

SLOW = float(os.environ.get("SLUICE_SLOW", "1"))
"""How many times longer than usual everything may take; 3 in CI."""
PATIENCE = 120.0 * SLOW
"""Seconds."""
