"""How long a test waits for a whole program until it fails: never what the test is about."""

import os

PATIENCE = 120.0 * float(os.environ.get("SLUICE_SLOW", "1"))
"""Seconds. CI sets `SLUICE_SLOW` to 3."""
