"""The checks in their order, and who makes them: `--check`, and every start.

Each check has its time. Python cannot end a thread, so one that hangs is left behind: it holds nothing and ends with the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from sluice_consumer import logs
from sluice_consumer.checks import local, services, stream, table
from sluice_consumer.checks.model import SECONDS, CheckFinding, CheckOutcome, OutOfTime, StartCheck, StartCheckResult, StartFacts, in_order, judge
from sluice_consumer.config import Config, UntilConfig, configuration
from sluice_consumer.kinesis.codec import ENCODING

Check = StartCheck[StartFacts]
T = TypeVar("T")


def _here(advice: str) -> CheckFinding:
    return CheckFinding(CheckOutcome.UNDECIDED, advice)


def _elsewhere(advice: str) -> CheckFinding:
    return CheckFinding(CheckOutcome.NO_ANSWER, advice)


CHECKS = (
    Check("config", "the configuration file", _elsewhere("is its volume there?"), local.config),
    Check("entrypoint", "pipeline.entrypoint, and its import in a process of its own", _here("the driver imports it"), local.entrypoint),
    Check("java", "Java, and its version", _here("Spark starts it"), local.check_java),
    Check("credentials", "AWS credentials, as botocore finds them", _elsewhere("is their provider there?"), services.credentials),
    Check(
        "stream",
        "the stream, and the permissions to read it",
        _elsewhere("check stream.region, stream.kinesisEndpoint and the network"),
        stream.check_stream,
    ),
    Check(
        "table",
        "the checkpoint table, and the permissions to read it",
        _elsewhere("check stream.region, stream.dynamodbEndpoint and the network"),
        table.check_table,
    ),
    Check("sink", "the sink's options, and the class of its file system", _here("Spark looks for its classes"), local.check_sink),
)


def results(facts: StartFacts, clock: Callable[[], float] = time.monotonic) -> Iterator[StartCheckResult]:
    """Makes the checks. Nothing is written."""

    def perform(check: Check) -> CheckFinding:
        try:
            return within(facts.seconds, lambda: check.run(facts))
        except Exception as error:  # noqa: BLE001 - judged
            return judge(error, check.late)

    return in_order(CHECKS, perform, clock)


def before_start(
    path: Path, environment: Mapping[str, str], until: UntilConfig | None = None, seconds: float = SECONDS, imported: set[str] | None = None
) -> tuple[Config, dict[str, str]]:
    """The configuration, once nothing speaks against a start with it, and what the driver's environment needs beside this process'.

    A service that does not answer is reported at once, and the start continues: its own calls are made again for a minute.

    Args:
        path: of the configuration file.
        environment: of this process. The driver's says which service does not speak CBOR, so that it does not try.
        until: the end of the run that options name; None: that of the configuration.
        seconds: that each check has.
        imported: functions that were imported well before; this start adds its own. None: this is the only start of this process.

    Raises:
        Refused: a check failed. Nothing was made, held or started.
    """
    facts = StartFacts(path, seconds, environment=environment, imported=set() if imported is None else imported)
    if until is not None:
        facts.until = until.option
    for result in results(facts):
        finding = result.finding
        if finding.error is not None:
            raise finding.error
        if finding.outcome is CheckOutcome.NO_ANSWER:
            logs.warn(f"{result.name}: {finding.message}; it is tried again")
        elif finding.outcome is CheckOutcome.WARNING:
            logs.warn(f"{result.name}: {finding.message}")
    return facts.config or configuration(path), {ENCODING: "json"} if facts.json_only else {}


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` returns or raises.

    Raises:
        OutOfTime: it takes longer.
    """
    returned, raised = list[T](), list[Exception]()

    def run() -> None:
        try:
            returned.append(call())
        except Exception as error:  # noqa: BLE001 - raised again, in the caller's thread
            raised.append(error)

    thread = threading.Thread(target=run, name="check", daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not returned:
        raise OutOfTime(f"no end within {seconds:g} s")
    return returned[0]
