"""The checks that need no service: the configuration file, and the user's function."""

from __future__ import annotations

import os

from sluice_checkpoints.aws import regions
from sluice_consumer.checks import importing
from sluice_consumer.checks.facts import StartFacts
from sluice_consumer.checks.model import CheckFinding, CheckOutcome
from sluice_consumer.config import PipelineConfig, configuration, with_end
from sluice_consumer.kinesis import codec
from sluice_consumer.process import configmap_code, entrypoint_check
from sluice_consumer.spark.entrypoint import ENTRYPOINT

FUNCTIONS = ("function", "transform")  # arguments of built-in sinks


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
    found = {name: importing.imported(name, facts.seconds / len(new), field) for field, name in new.items()}
    facts.imported.update(name for name, finding in found.items() if finding.outcome is CheckOutcome.OK)
    undecided = [finding for finding in found.values() if finding.outcome is not CheckOutcome.OK]
    known = CheckFinding(CheckOutcome.OK, f"{facts.given.pipeline.entrypoint} {'was imported before' if users else 'is built in'}")
    return (undecided or [*found.values(), known])[0]


def _functions(pipeline: PipelineConfig) -> dict[str, str]:
    """By field: the entrypoint, and what a built-in sink is to call."""
    if not (pipeline.args and pipeline.is_built_in):
        return {ENTRYPOINT: pipeline.entrypoint}
    from sluice_consumer.sinks.options import FUNCTION  # noqa: PLC0415 - PySpark comes with it

    asked = pipeline.args
    named = {f"pipeline.args.{name}": asked.get(name) for name in FUNCTIONS}
    given = {field: value for field, value in named.items() if isinstance(value, str) and FUNCTION.fullmatch(value)}
    return {ENTRYPOINT: pipeline.entrypoint} | given
