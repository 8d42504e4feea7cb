"""A program's last words, as far as they may become a reason of a condition or a label of a metric. Pure.

They are the pipeline's: any text, of any length. Nor may a driver say of itself what only others can know, or what the operator says of its own
deeds: that somebody took its pod away would cost it nothing, and would be told as if it were so.
"""

from __future__ import annotations

import re

from sluice_operator.plan.advice import FAILURES
from sluice_operator.plan.events import Reason
from sluice_operator.plan.record import DISRUPTIONS

WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")
LONGEST = 1024  # characters of a message
OF_PROGRAMS = frozenset({
    "Completed", "DataLost", "DrainTimeout", "Failed", "Fenced", "Held", "JobsNotDone", "LeaseHeld", "LostRace", "NotNow", "ProcessExited",
    "ProtocolViolation", "Refused", "ServiceUnavailable", "SourceActive", "StreamNotFound",
})  # fmt: skip
"""What drivers and migrations of Sluice say of themselves; a pipeline may have words of its own."""
CAUSES = OF_PROGRAMS | DISRUPTIONS | {"OOMKilled"}
OTHER = "Other"
STEPS = {"SpecChanged", "Deleted", "Suspended", "ScaledToZero", "DriverDeleted", "TakingOver", "Consuming", "CaughtUp", "NoDriver"}
RESERVED = (frozenset(FAILURES) | {str(reason) for reason in Reason} | STEPS | CAUSES) - OF_PROGRAMS


def reason(said: object, otherwise: str) -> str:
    """One word of a program's own, if it is one and theirs to say."""
    return said if isinstance(said, str) and WORD.fullmatch(said) and said not in RESERVED else otherwise


def message(said: object, text: object) -> str:
    """What the program said beside; a reason that did not become one stands before it."""
    words = "" if text is None else str(text)
    kept = not said or reason(said, "") == said
    return (words if kept else f"{said}: {words}")[:LONGEST]


def cause(word: str) -> str:
    """The label of a metric: of a closed list, for each makes a series for good."""
    return word if word in CAUSES else OTHER
