"""Whether Spark would find what the sink needs, without a JVM: the classes are looked for in the jars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_checkpoints.errors import Refused
from sluice_consumer.checks.facts import StartFacts
from sluice_consumer.checks.model import CheckFinding, CheckOutcome

if TYPE_CHECKING:
    from sluice_consumer.sinks.class_path import ClassPath
    from sluice_consumer.sinks.needs import Need

NOTHING = CheckFinding(CheckOutcome.OK, "this sink needs no jar")


def check_sink(facts: StartFacts) -> CheckFinding:
    """Reads options, and looks for classes.

    Raises:
        Refused: an option is wrong; or a class is missing that a built-in sink, or a folder of dead letters, needs.
    """
    pipeline = facts.given.pipeline
    if not (pipeline.args or pipeline.is_built_in or facts.given.on_error):
        return NOTHING
    from sluice_consumer.sinks import class_path, needs  # noqa: PLC0415 - PySpark, which a start without a sink of ours need not wait for

    asked = needs.needs_of(facts.given)
    if not asked:
        return NOTHING
    here = class_path.of_spark(facts.given.spark_conf, facts.environment)
    return _worst([_judged(need, here) for need in asked])


def _judged(need: Need, here: ClassPath) -> CheckFinding:
    there = here.has(need.class_name)
    if there:
        return CheckFinding(CheckOutcome.OK, f"{need.field}: {need.value}: {need.class_name} is on Spark's class path")
    if there is None:
        return CheckFinding(CheckOutcome.UNDECIDED, f"{need.field}: {need.value}: only Spark knows whether {need.class_name} is among its packages")
    missing = f"{need.field}: {need.value}: {need.class_name} is not on Spark's class path; use an image with its jar (docs/images.md), or add it"
    if need.certain:
        raise Refused(missing)
    return CheckFinding(CheckOutcome.WARNING, f"{missing}. If {need.user} writes there with Spark, it will fail")


def _worst(findings: list[CheckFinding]) -> CheckFinding:
    rank = (CheckOutcome.WARNING, CheckOutcome.UNDECIDED, CheckOutcome.OK)
    return min(findings, key=lambda finding: rank.index(finding.outcome))
