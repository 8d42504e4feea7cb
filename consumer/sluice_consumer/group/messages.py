"""What supervisor and driver of a group write into each other's pipe: one JSON object a line. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from sluice_consumer.exits.ending import Ending

UP = "SLUICE_GROUP_UP"  # in the driver's environment: the number of the pipe to its supervisor
LONGEST = 3000  # bytes of the words of a message: a line of less than 4 KB is written into a pipe as a whole, or not at all
WIDEST = 12  # bytes of a character in JSON


@dataclass(frozen=True, slots=True)
class Begin:
    """Down: a consumer's lease was taken; its run begins (`lease_handoff.LeaseHandoff`).

    Attributes:
        name: of the member (`shared_spark.Member.key`), in all messages.
        path: of its configuration. spec_hash: what its version is called; "": as the environment says.
    """

    name: str
    generation: int
    token: str
    how: str
    wait_out_millis: int
    sent: float
    path: str = ""
    spec_hash: str = ""


@dataclass(frozen=True, slots=True)
class Beat:
    """Down: a heartbeat was accepted that was sent then."""

    name: str
    generation: int
    sent: float


@dataclass(frozen=True, slots=True)
class Lose:
    """Down: the lease is another's; its work is to end now."""

    name: str
    generation: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Down: its open batch is to be the last one of this run."""

    name: str
    generation: int


@dataclass(frozen=True, slots=True)
class Executors:
    """Down: so many are wanted."""

    count: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Down: no run is left, and none begins; Spark is stopped."""


@dataclass(frozen=True, slots=True)
class DriverReads:
    """Up: Spark has started, and from now on everything is read."""


@dataclass(frozen=True, slots=True)
class Doing:
    """Up: where a consumer's batch is. An empty phase: it has none."""

    name: str
    generation: int
    batch: int
    phase: str


@dataclass(frozen=True, slots=True)
class Over:
    """Up: a run has ended, and it is proven that nothing of it works any more. `quiet`: its lease may be released."""

    name: str
    generation: int
    code: int
    reason: str
    message: str
    quiet: bool

    @property
    def ending(self) -> Ending:
        """How the run ended."""
        return Ending(self.code, self.reason, self.message, self.quiet)


KINDS = {kind.__name__: kind for kind in (Begin, Beat, Lose, Drain, Executors, Leave, DriverReads, Doing, Over)}
Message = Begin | Beat | Lose | Drain | Executors | Leave | DriverReads | Doing | Over


def shortened(words: str) -> str:
    """The beginning of these words that fits into a message."""
    short = words[:LONGEST]
    return short if len(json.dumps(short)) <= LONGEST else short[: LONGEST // WIDEST]


def line(message: Message) -> bytes:
    """A message as it travels. Below 4 KB, so that lines of several threads never mix in a pipe."""
    return json.dumps({"kind": type(message).__name__, **asdict(message)}).encode() + b"\n"


def parsed(text: bytes) -> Message:
    """What `line` made.

    Raises:
        ValueError, KeyError, TypeError: it was cut, or another version wrote it.
    """
    values: dict[str, Any] = json.loads(text)
    message: Message = KINDS[values.pop("kind")](**values)
    return message
