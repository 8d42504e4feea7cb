"""Whether there is a Java that Spark can run on, found as Spark's own scripts find it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache

from sluice_checkpoints.errors import Refused
from sluice_consumer.checks.facts import StartFacts
from sluice_consumer.checks.model import CheckFinding, CheckOutcome

HOME = "JAVA_HOME"
TRIED = (17, 21)  # docs/support.md
ADVICE = "install Java 17 or 21, or set JAVA_HOME to where it is"
VERSION = re.compile(r'version "(\d+)')


def check_java(facts: StartFacts) -> CheckFinding:
    """Asks Java for its version.

    Raises:
        Refused: as `check`.
    """
    found = check(facts.environment)
    if found not in TRIED:
        return CheckFinding(CheckOutcome.WARNING, f"Java {found} was never tried with Sluice; 17 and 21 were")
    return CheckFinding(CheckOutcome.OK, f"Java {found}")


def check(environment: Mapping[str, str]) -> int:
    """The major version of the Java that Spark would start.

    Raises:
        Refused: there is none, or it is too old for Spark.
    """
    return _version(environment.get(HOME), environment.get("PATH", os.defpath))


@cache
def _version(home: str | None, path: str) -> int:
    """Once a process: a pool starts many consumers."""
    program = f"{home}/bin/java" if home else "java"
    try:
        asked = subprocess.run(
            [program, "-version"], env=os.environ | {"PATH": path}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError as error:
        where = f"{HOME} is {home}, and there is no bin/java in it" if home else f"no java on the PATH, and {HOME} is not set"
        raise Refused(f"Spark needs Java: {where} ({error.strerror}); {ADVICE}") from error
    version = VERSION.search(asked.stderr)
    if version is None:
        said = " ".join(asked.stderr.split())
        raise Refused(f"Spark needs Java: `{program} -version` ends with {asked.returncode} and names no version ({said!r}); {ADVICE}")
    if (found := int(version[1])) < TRIED[0]:
        raise Refused(f"Spark needs Java {TRIED[0]} or later, and `{program}` is Java {found}; {ADVICE}")
    return found
