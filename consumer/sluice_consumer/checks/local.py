"""The checks that need no service: the configuration file, the user's function, Java, and whether Spark would find what the sink needs.

No JVM is started for that: the sink's classes are looked for in the jars.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sluice_checkpoints.aws import regions
from sluice_checkpoints.errors import Refused
from sluice_consumer.checks import importing
from sluice_consumer.checks.model import CheckFinding, CheckOutcome, StartFacts
from sluice_consumer.config import PipelineConfig, configuration, with_end
from sluice_consumer.kinesis import codec
from sluice_consumer.process import configmap_code, entrypoint_check
from sluice_consumer.spark import java
from sluice_consumer.spark.entrypoint import ENTRYPOINT

if TYPE_CHECKING:
    from sluice_consumer.sinks.class_path import ClassPath
    from sluice_consumer.sinks.needs import Need

FUNCTIONS = ("function", "transform")  # arguments of built-in sinks
NOTHING = CheckFinding(CheckOutcome.OK, "this sink needs no jar")


def config(facts: StartFacts) -> CheckFinding:
    """Reads the file.

    Raises:
        Refused: it is wrong, or the environment is, or the end that options name.
    """
    facts.config = with_end(configuration(facts.path), facts.until)
    codec.chosen(facts.environment)
    stream = facts.config.stream
    if None in (stream.kinesis_endpoint, stream.dynamodb_endpoint) and (unknown := regions.doubt(stream.region)):
        return CheckFinding(CheckOutcome.WARNING, f"stream.region: {unknown}")
    return CheckFinding(CheckOutcome.OK, f"{facts.path}: consumer {facts.config.name}")


def entrypoint(facts: StartFacts) -> CheckFinding:
    """Reads the source of the user's functions, then imports those that were not imported yet, in another process.

    Raises:
        Refused: there is no such module or function, or it cannot be imported.
    """
    if facts.scratch is not None:  # a driver in this pod imports its own copy
        configmap_code.take(os.environ, temporary=facts.scratch)
    named = _functions(facts.given.pipeline)
    for field, name in named.items():
        entrypoint_check.check(name, field)
    users = {field: name for field, name in named.items() if not PipelineConfig(name).is_built_in}
    new = {field: name for field, name in users.items() if name not in facts.imported}
    findings = {name: importing.imported(name, facts.seconds / len(new), field) for field, name in new.items()}
    facts.imported.update(name for name, finding in findings.items() if finding.outcome is CheckOutcome.OK)
    undecided = [finding for finding in findings.values() if finding.outcome is not CheckOutcome.OK]
    known = CheckFinding(CheckOutcome.OK, f"{facts.given.pipeline.entrypoint} {'was imported before' if users else 'is built in'}")
    return (undecided or [*findings.values(), known])[0]


def _functions(pipeline: PipelineConfig) -> dict[str, str]:
    """By field: the entrypoint, and what a built-in sink is to call."""
    if not (pipeline.args and pipeline.is_built_in):
        return {ENTRYPOINT: pipeline.entrypoint}
    from sluice_consumer.sinks.options import FUNCTION  # noqa: PLC0415 - PySpark comes with it

    asked = pipeline.args
    named = {f"pipeline.args.{name}": asked.get(name) for name in FUNCTIONS}
    given = {field: value for field, value in named.items() if isinstance(value, str) and FUNCTION.fullmatch(value)}
    return {ENTRYPOINT: pipeline.entrypoint} | given


def check_java(facts: StartFacts) -> CheckFinding:
    """Asks Java for its version.

    Raises:
        Refused: see `java.check`.
    """
    version = java.check(facts.environment)
    if version not in java.TRIED:
        return CheckFinding(CheckOutcome.WARNING, f"Java {version} was never tried with Sluice; 17 and 21 were")
    return CheckFinding(CheckOutcome.OK, f"Java {version}")


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
