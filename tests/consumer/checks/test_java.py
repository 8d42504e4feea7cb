"""Whether there is a Java for Spark: the one that Spark's scripts would start."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.checks import java
from sluice_consumer.checks.facts import StartFacts
from sluice_consumer.checks.model import CheckOutcome


def home(folder: Path, says: str, code: int = 0) -> dict[str, str]:
    """The environment with a Java that says this of itself."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return {java.HOME: str(folder), "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("version", "outcome"), [("17.0.9", CheckOutcome.OK), ("21", CheckOutcome.OK), ("19.0.1", CheckOutcome.WARNING), ("25", CheckOutcome.WARNING)]
)
def test_a_java_that_was_never_tried_is_a_warning(tmp_path: Path, version: str, outcome: CheckOutcome) -> None:
    """It may work."""
    found = java.check_java(StartFacts(tmp_path, environment=home(tmp_path, f'openjdk version "{version}" 2023-10-17')))
    assert (found.outcome, f"Java {version.partition('.')[0]}" in found.said) == (outcome, True)


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ('java version "1.8.0_392"', "Spark needs Java 17 or later, and `.*/bin/java` is Java 1; install Java 17 or 21"),
        ("CMD: bad array subscript", "-version` ends with 1 and names no version .*bad array subscript.*; install"),
    ],
)
def test_a_java_that_cannot_run_spark_is_refused(tmp_path: Path, says: str, words: str) -> None:
    """With what to do."""
    with pytest.raises(Refused, match=words):
        java.check(home(tmp_path, says, code=1))


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({java.HOME: "/opt/nosuch"}, "JAVA_HOME is /opt/nosuch, and there is no bin/java in it"),
        ({"PATH": "/nosuch"}, "no java on the PATH, and JAVA_HOME is not set"),
    ],
)
def test_where_there_is_no_java_that_is_what_is_said(environment: dict[str, str], words: str) -> None:
    """Spark's own words are JAVA_GATEWAY_EXITED, or bash's."""
    with pytest.raises(Refused, match=f"^Spark needs Java: {words} .No such file or directory.; install Java 17 or 21"):
        java.check(environment)
