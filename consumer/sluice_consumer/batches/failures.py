"""What an exception of `process` says: whether waiting is its cure, and whether another one is the same (docs/protocol.md, "Poison"). Pure.

In doubt it is one that waiting cures: then the batch is tried again, and nothing is excluded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

OWN = re.compile(
    r"\bsluice_(checkpoints|consumer)\.[\w.]*\b(Fenced|LostRace|ProtocolViolation|ReplayShort|ServiceUnavailable|ShardNotFound|EndUnknown)\b"
)
"""Reading the stream or its table failed, in a task: it is no failure of the user's code."""

TRANSIENT_NAMES = re.compile(
    r"\w*Connect(ion)?\w*(Error|Exception)|\w*Time(d)?[Oo]ut\w*|\w*Unavailable\w*|\w*Throttl\w*|\w*TooManyRequests\w*|SlowDown|BrokenPipeError"
    r"|ProvisionedThroughputExceeded\w*|LimitExceeded\w*|Expired\w*|\w*AccessDenied\w*|\w*AccessControl\w*|Forbidden\w*|\w*Unauthori[sz]ed\w*"
    r"|\w*NotAuthori[sz]ed\w*|\w*Credentials\w*|MemoryError|\w*OutOfMemory\w*|OperationalError|InterfaceError|SSL\w*|UnknownHost\w*|NoRouteToHost\w*"
    r"|Socket\w*|MaxRetryError|\w*ProtocolError|\w*IncompleteRead\w*|ServiceFailure\w*|RESTException|FetchFailed\w*|HTTPError|URLError|gaierror"
)
"""Classes of exceptions, and codes of AWS: something cannot be reached, is too busy, refuses the account, or has no room."""

TRANSIENT_WORDS = re.compile(
    r"ExecutorLostFailure|Python worker (exited|failed)|OutOfMemoryError|No space left on device|Connection (refused|reset)|Broken pipe"
    r"|Status Code: (403|429|5\d\d)|\b(429|5\d\d) (Too Many|Server Error|Service|Internal|Bad Gateway|Gateway)|FetchFailed|cancelled|Killed by"
)
"""What Spark and clients say of the same."""

AWS_CODE = re.compile(r"An error occurred \((\w+)\)")
RAISED = re.compile(r"^(?:[\w.]+\.)?([A-Z]\w*)(?::|$)", re.MULTILINE)
FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
LIBRARY = re.compile(r"/(pyspark|py4j)/|sluice_consumer/(spark|batches|process)/")


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as it is judged.

    Attributes:
        names: of its class and those above, and of its causes, without modules.
        trace: all that is known of it as text, with Python's frames; the innermost exception last.
    """

    names: Sequence[str]
    trace: str


def is_own(raised: Raised) -> bool:
    """Whether it comes from reading the batch, not from the user's code."""
    return bool(OWN.search(raised.trace))


def is_transient(raised: Raised) -> bool:
    """Whether it says that something outside of the records is the cause."""
    names = [*raised.names, *AWS_CODE.findall(raised.trace), *RAISED.findall(raised.trace)]
    return any(TRANSIENT_NAMES.fullmatch(name) for name in names) or bool(TRANSIENT_WORDS.search(raised.trace))


def signature(raised: Raised) -> str:
    """By which two failures are compared: the innermost exception's class, and the user's line that raised it, or else its words without figures."""
    classes = RAISED.findall(raised.trace) or list(raised.names[:1])
    frames = [frame for frame in FRAME.findall(raised.trace) if not LIBRARY.search(frame[0])]
    if frames:
        return f"{classes[-1]} at {frames[-1][0]}:{frames[-1][1]}"
    words = re.sub(r"[0-9]+", "#", re.sub(r"'[^']*'", "…", raised.trace.strip().partition("\n")[0]))
    return f"{classes[-1] if classes else ''}: {words[:200]}"
