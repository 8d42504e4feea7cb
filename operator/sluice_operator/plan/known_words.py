"""A program's termination message, as far as it may become a reason of a condition or a label of a metric. Pure.

It is the pipeline's: any text, of any length. A driver may not use the reasons that only the operator or the kubelet can know. A driver that
said "Evicted" of itself would never be counted as failed.
"""

from __future__ import annotations

import re

from sluice_operator.names import END_REACHED, printable
from sluice_operator.plan.advice import FAILURES
from sluice_operator.plan.events import Reason
from sluice_operator.plan.record import DISRUPTIONS
from sluice_operator.untrusted import bounds
from sluice_operator.untrusted.values import WORDS as LONGEST

WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")
OF_PROGRAMS = frozenset({
    "AccessDenied", "BatchOverdue", "Completed", "DataLost", "DrainTimeout", "DriverExited", "DriverKilled", "Failed", "Fenced", "Held",
    "Interrupted", "JobsNotDone", "LeaseHeld", "LeaseLost", "LostRace", "NotNow", "ProcessExited", "ProtocolViolation", "Refused",
    "ServiceUnavailable", "SourceActive", "SparkGone", "StartOverdue", "StreamNotFound", "TooMuchPoison",
})  # fmt: skip
"""The reasons that drivers and migrations of Sluice give; a pipeline may give others."""
CAUSES = OF_PROGRAMS | DISRUPTIONS | {"OOMKilled", END_REACHED}
OTHER = "Other"
STEPS = {
    "SpecChanged",
    "RestartRequested",
    "Deleted",
    "Suspended",
    "ScaledToZero",
    "DriverDeleted",
    "TakingOver",
    "Consuming",
    "CaughtUp",
    "NoDriver",
    "StandbyFollows",
}
RESERVED = (frozenset(FAILURES) | {str(reason) for reason in Reason} | STEPS | CAUSES) - OF_PROGRAMS


def reason(given: object, otherwise: str) -> str:
    """The reason that a program gave, if it is one word and not reserved; else `otherwise`."""
    return given if isinstance(given, str) and WORD.fullmatch(given) and given not in RESERVED else otherwise


def message(given: object, text: object) -> str:
    """The program's message as one printable line. A reason that was not accepted comes before it."""
    words, word = _text(text), _text(given)
    kept = not given or reason(given, "") == given
    return printable((words if kept else f"{word}: {words}")[:LONGEST])


def _text(given: object) -> str:
    """As text, if it is not nested too deeply for that."""
    return "" if given is None or bounds.problem(given, "") else str(given)


def cause(word: str) -> str:
    """The label of a metric, from a closed list: each label makes a series for good."""
    return word if word in CAUSES else OTHER
