"""Whether there is a Java that Spark can run on."""

from __future__ import annotations

from sluice_consumer.checks.facts import StartFacts
from sluice_consumer.checks.model import CheckFinding, CheckOutcome
from sluice_consumer.spark import java


def check_java(facts: StartFacts) -> CheckFinding:
    """Asks Java for its version.

    Raises:
        Refused: see `java.check`.
    """
    found = java.check(facts.environment)
    if found not in java.TRIED:
        return CheckFinding(CheckOutcome.WARNING, f"Java {found} was never tried with Sluice; 17 and 21 were")
    return CheckFinding(CheckOutcome.OK, f"Java {found}")
