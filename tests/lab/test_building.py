from __future__ import annotations

import sys

import pytest

from sluice_lab.errors import CommandFailedError
from sluice_lab.machine.processes import watch


def test_a_silent_build_is_ended_with_its_children() -> None:
    """Nothing else bounds it. The pipe is closed only when the last of them has gone."""
    told: list[str] = []
    child = "import subprocess, sys; print('begun', flush=True); subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    with pytest.raises(CommandFailedError, match=r"printed nothing for 1 s"):
        watch((sys.executable, "-c", child), told.append, silent=1.0)
    assert told == ["begun"]
