"""Imports the user's function in a process of its own, which is thrown away: what an import does must not be done in the supervisor.

An import is repeated by every restart, so once more is nothing new to it. One that takes too long, or that uses Spark, is not judged: the driver
imports it when Spark runs. A working pipeline is never refused.

That process says what came of the import: a JSON array of outcome and words on standard output.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import traceback
from typing import NoReturn

from sluice_checkpoints.errors import Refused
from sluice_consumer.checks.model import CheckFinding, CheckOutcome
from sluice_consumer.process import child_process
from sluice_consumer.spark.entrypoint import ENTRYPOINT, load

SHARE = 0.9  # of the check's time: the rest is for the verdict
SPARKS = "/pyspark/"
LONGEST = 300


def imported(entrypoint: str, seconds: float, field: str = ENTRYPOINT) -> CheckFinding:
    """What came of the import.

    Raises:
        Refused: it failed.
    """
    command = [sys.executable, "-m", "sluice_consumer.checks.importing", entrypoint, field]
    environment = os.environ | {child_process.PARENT: str(os.getpid())}
    null = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdin=null, stdout=subprocess.PIPE, stderr=null, start_new_session=True) as child:
        try:
            output, _ = child.communicate(timeout=seconds * SHARE)
        except subprocess.TimeoutExpired:
            return CheckFinding(CheckOutcome.UNDECIDED, f"{entrypoint}: its import takes longer than {seconds * SHARE:g} s; the driver imports it")
        finally:
            child_process.end_group(child)
    return _judged(f"{field}: {entrypoint}", output, child.returncode)


def _judged(named: str, output: bytes, status: int) -> CheckFinding:
    with contextlib.suppress(ValueError, TypeError):
        outcome, words = json.loads(output)
        if outcome == CheckOutcome.FAILED:
            raise Refused(words)
        return CheckFinding(CheckOutcome(outcome), words)
    raise Refused(f"{named}: its import ends the process (status {status})")


class NeedsSpark(BaseException):
    """The module asks for a session when it is imported. No `except Exception` of the module's hides it."""


def judge(entrypoint: str, field: str) -> tuple[CheckOutcome, str]:
    """What came of the import, and words for people."""
    without_spark()
    try:
        load(entrypoint, field)
    except Refused as error:
        return CheckOutcome.FAILED, str(error)
    except NeedsSpark:
        return CheckOutcome.UNDECIDED, f"{entrypoint}: its import uses Spark, so the driver imports it when Spark runs"
    except SystemExit as error:
        return CheckOutcome.FAILED, f"{field}: {entrypoint}: its import calls sys.exit({error.code!r})"
    except Exception as error:  # noqa: BLE001 - the user's
        return _raised(entrypoint, field, error)
    return CheckOutcome.OK, f"{entrypoint} can be imported"


def without_spark() -> None:
    """Makes every way to a session raise `NeedsSpark`: this process starts no JVM."""
    from pyspark import SparkContext  # noqa: PLC0415 - not needed to import this module
    from pyspark.sql import SparkSession  # noqa: PLC0415

    for owner, names in ((SparkContext, ("_ensure_initialized",)), (SparkSession, ("active", "getActiveSession"))):
        for name in names:
            setattr(owner, name, classmethod(_no_spark))
    SparkSession.Builder.getOrCreate = _no_spark  # type: ignore[method-assign]  # on purpose


def _no_spark(*_: object, **__: object) -> NoReturn:
    raise NeedsSpark


def _raised(entrypoint: str, field: str, error: Exception) -> tuple[CheckOutcome, str]:
    from sluice_consumer.exits.user_failure import failure_of  # noqa: PLC0415 - imports much, and only a failure needs it

    if any(SPARKS in frame.filename for frame in traceback.extract_tb(error.__traceback__)):
        return CheckOutcome.UNDECIDED, f"{entrypoint}: its import fails inside of PySpark without a session; the driver imports it when Spark runs"
    failure = failure_of(error, entrypoint.partition(":")[0].partition(".")[0])
    place = f" ({failure.frames[0].place})" if failure.frames else ""
    return CheckOutcome.FAILED, f"{field}: {entrypoint}: its import raises {failure.summary[:LONGEST]}{place}"


def main() -> None:
    """The program. What the module prints is not the verdict."""
    child_process.die_with_parent()
    verdict = os.dup(1)
    os.dup2(2, 1)
    verdict_text = json.dumps(judge(*sys.argv[1:]))
    os.write(verdict, verdict_text.encode())
    os._exit(0)  # threads of the module's have nothing left to say


if __name__ == "__main__":
    main()
