"""A run that has to end in time: tests that would begin too late are skipped, and named as not run.

`.ci/run` sets `SLUICE_DEADLINE`, because CI ends a run after 90 minutes, whatever it has shown by then. On two quiet cores all of it ends within 70.
"""

from __future__ import annotations

import os
import time

import pytest

DEADLINE = "SLUICE_DEADLINE"  # seconds since 1970
REASON = f"{DEADLINE} was over: this machine is slow, or busy; `make test` and `make test-more` run everything"


def skip_if_over() -> None:
    """Call it before a test's set-up.

    Raises:
        pytest.skip.Exception: the deadline is over.
    """
    if time.time() > float(os.environ.get(DEADLINE) or "inf"):
        pytest.skip(REASON)
