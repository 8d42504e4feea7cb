"""Checks: what is known before them, what they find out for those after them, and what they find."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from sluice_checkpoints.aws.connections import TimeLimits
from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.errors import ServiceUnavailable, SluiceError
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.config import Config

F = TypeVar("F")


class OutOfTime(Exception):
    """A check did not end within its time limit."""


class CheckOutcome(StrEnum):
    """What came of a check.

    OK, WARNING: a consumer may start. UNDECIDED: what is asked only shows when Spark runs. NO_ANSWER: a service did not answer, and may later.
    FAILED: you have to act. NOT_REACHED: an earlier check failed, or had no answer.
    """

    OK = "ok"
    WARNING = "warning"
    UNDECIDED = "not judged"
    NO_ANSWER = "no answer"
    FAILED = "failed"
    NOT_REACHED = "not reached"

    @property
    def stops(self) -> bool:
        """Whether the checks after it are left out."""
        return self in {CheckOutcome.NO_ANSWER, CheckOutcome.FAILED}


@dataclass(frozen=True)
class CheckFinding:
    """What a check found: of a failure what is wrong, in which setting, and what to do next.

    Attributes:
        error: that a start ends with; None unless the check failed.
    """

    outcome: CheckOutcome
    message: str
    error: SluiceError | None = None


@dataclass(frozen=True)
class StartCheck(Generic[F]):
    """One check.

    Attributes:
        name: for people and scripts; names are added, never renamed.
        asks: what it looks at.
        late: what it comes to if it takes too long, and what to do.
        run: looks; takes what earlier checks found out, and adds to it. What it raises is judged by `judge`.
    """

    name: str
    asks: str
    late: CheckFinding
    run: Callable[[F], CheckFinding]


@dataclass(frozen=True)
class StartCheckResult:
    """A check that was made, or left out; `seconds` that it took."""

    name: str
    asks: str
    finding: CheckFinding
    seconds: float = 0.0


LEFT_OUT = CheckFinding(CheckOutcome.NOT_REACHED, "")


def in_order(
    checks: Sequence[StartCheck[F]], perform: Callable[[StartCheck[F]], CheckFinding], clock: Callable[[], float]
) -> Iterator[StartCheckResult]:
    """The results, one by one, until a check stops the rest.

    Args:
        checks: in order.
        perform: makes one.
        clock: monotonic seconds.
    """
    stopped = False
    for check in checks:
        began = clock()
        finding = LEFT_OUT if stopped else perform(check)
        yield StartCheckResult(check.name, check.asks, finding, clock() - began)
        stopped = stopped or finding.outcome.stops


def judge(error: Exception, late: CheckFinding) -> CheckFinding:
    """What an exception of a check means. One that nobody thought of stops no consumer: the start meets it again, or it was the check's own."""
    match error:
        case OutOfTime():
            return replace(late, message=f"{error}; {late.message}")
        case Again() | ServiceUnavailable():
            return CheckFinding(CheckOutcome.NO_ANSWER, str(error))
        case SluiceError():
            return CheckFinding(CheckOutcome.FAILED, str(error), error)
        case _:
            return CheckFinding(CheckOutcome.UNDECIDED, f"{type(error).__name__}: {error}")


SECONDS = 2.0


@dataclass
class StartFacts:
    """Of one run of the checks.

    Attributes:
        path: of the configuration file.
        seconds: that each check has.
        environment: of this process.
        until: the end of the run, as the option names it.
        scratch: where modules out of a ConfigMap are copied to; None: they were, by the start.
        config: as the first check read it.
        identity: the stream, as it was described.
        json_only: the service of the stream does not speak CBOR.
        imported: functions whose import ended well before. They are not imported again: all members of a pool may have the same one.
    """

    path: Path
    seconds: float = SECONDS
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    until: str | None = None
    scratch: Path | None = None
    config: Config | None = None
    identity: StreamIdentity | None = None
    json_only: bool = False
    imported: set[str] = field(default_factory=set)

    @property
    def given(self) -> Config:
        """The configuration; only for checks after the first one."""
        assert self.config is not None  # noqa: S101 - the checks are in order
        return self.config

    @property
    def waits(self) -> TimeLimits:
        """For one call: short enough that a silent host is named before the check's own time is over."""
        return TimeLimits(self.seconds * 0.45, self.seconds * 0.9)
