"""The process that imports the user's function, and says what came of it: a JSON array of outcome and words on standard output."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import NoReturn

from sluice_checkpoints.errors import Refused
from sluice_consumer.checks.model import CheckOutcome
from sluice_consumer.process import child_process
from sluice_consumer.spark.entrypoint import load

SPARKS = "/pyspark/"
LONGEST = 300


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
    from sluice_consumer.process.user_failure import failure_of  # noqa: PLC0415 - imports much, and only a failure needs it

    if any(SPARKS in frame.filename for frame in traceback.extract_tb(error.__traceback__)):
        return CheckOutcome.UNDECIDED, f"{entrypoint}: its import fails inside of PySpark without a session; the driver imports it when Spark runs"
    failure = failure_of(error, entrypoint.partition(":")[0].partition(".")[0])
    place = f" ({failure.frames[0].place})" if failure.frames else ""
    return CheckOutcome.FAILED, f"{field}: {entrypoint}: its import raises {failure.told[:LONGEST]}{place}"


def main() -> None:
    """The program. What the module prints is not the verdict."""
    child_process.die_with_parent()
    verdict = os.dup(1)
    os.dup2(2, 1)
    said = json.dumps(judge(*sys.argv[1:]))
    os.write(verdict, said.encode())
    os._exit(0)  # threads of the module's have nothing left to say


if __name__ == "__main__":
    main()
