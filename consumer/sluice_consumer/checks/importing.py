"""Imports the user's function in a process of its own, which is thrown away: what an import does must not be done in the supervisor.

An import is repeated by every restart, so once more is nothing new to it. One that takes too long, or that uses Spark, is not judged: the driver
imports it when Spark runs. A working pipeline is never refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

from sluice_checkpoints.errors import Refused
from sluice_consumer.checks.model import CheckFinding, CheckOutcome
from sluice_consumer.process import child_process
from sluice_consumer.spark.entrypoint import ENTRYPOINT

SHARE = 0.9  # of the check's time: the rest is for the verdict


def imported(entrypoint: str, seconds: float, field: str = ENTRYPOINT) -> CheckFinding:
    """What came of the import.

    Raises:
        Refused: it failed.
    """
    command = [sys.executable, "-m", "sluice_consumer.checks.import_program", entrypoint, field]
    environment = os.environ | {child_process.PARENT: str(os.getpid())}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, start_new_session=True) as child:
        try:
            said, _ = child.communicate(timeout=seconds * SHARE)
        except subprocess.TimeoutExpired:
            return CheckFinding(CheckOutcome.UNDECIDED, f"{entrypoint}: its import takes longer than {seconds * SHARE:g} s; the driver imports it")
        finally:
            child_process.end_group(child)
    return _judged(f"{field}: {entrypoint}", said, child.returncode)


def _judged(named: str, said: bytes, status: int) -> CheckFinding:
    with contextlib.suppress(ValueError, TypeError):
        outcome, words = json.loads(said)
        if outcome == CheckOutcome.FAILED:
            raise Refused(words)
        return CheckFinding(CheckOutcome(outcome), words)
    raise Refused(f"{named}: its import ends the process (status {status})")
