"""What a failure of `process` says: whether it is one, whether waiting is its cure, whether another is the same (docs/protocol.md, "Poison"). Pure.

Only what code has decided is asked: classes, codes, the user's line. No text is: a message quotes the record, and a line of source may say anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from sluice_consumer.poison import known_errors as known
from sluice_consumer.poison.search import CRASH, DATA, UNKNOWN

PASSING, WORKER_EXITED = "spark:passing", "spark:worker exited"
"""Codes for what Spark has no class for: a node was lost or a job cancelled; a Python worker died."""


@dataclass(frozen=True, slots=True)
class RaisedLink:
    """One exception of a chain.

    Attributes:
        kinds: its class and those above it, with their modules: `builtins.KeyError`, `builtins.LookupError`.
        codes: what it carries as a field, `kind:code`: `aws:SlowDown`, `sql:40001`, `http:503`, `errno:ENOSPC`.
        implied: it was only being handled when the previous one was raised, and need not be its cause.
    """

    kinds: tuple[str, ...]
    codes: tuple[str, ...] = ()
    implied: bool = False


@dataclass(frozen=True, slots=True)
class TaskRefusal:
    """A refusal of ours in a task: its class, and its words as a whole, which end with what to do."""

    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Raised:
    """A failure as it is judged.

    Attributes:
        chain: the outermost exception, then what it was raised from.
        place: the user's line that raised it, `file:line`; "" if none is known.
        trace: all that is known of it, for people. Nothing is decided by it.
        ours: a line of Sluice raised it, in the driver.
        refused: what reading the batch refused, in a task. Nothing is decided by its words.
    """

    chain: tuple[RaisedLink, ...]
    place: str = ""
    trace: str = ""
    ours: bool = False
    refused: TaskRefusal | None = None


def is_own(raised: Raised) -> bool:
    """Whether reading the batch, its dead letters, a sink of ours or a mistake in Sluice raised it, and not the user's code."""
    return raised.ours or any(kind.startswith(known.OWN) for thrown in raised.chain for kind in thrown.kinds)


def is_transient(raised: Raised) -> bool:
    """Whether something outside of the records is the cause."""
    return any(map(_passes, raised.chain))


def kind(raised: Raised) -> str:
    """`CRASH`: a Python worker died. `DATA`: code says that a value is wrong. `UNKNOWN`: neither is known."""
    if any(WORKER_EXITED in thrown.codes for thrown in raised.chain):
        return CRASH
    if any(SQLSTATES[kind](code) for thrown in raised.chain for kind, code in _codes(thrown) if kind in SQLSTATES):
        return DATA
    return DATA if raised.chain and _of_data(_root(raised.chain)) else UNKNOWN


def signature(raised: Raised) -> str:
    """By which two failures are compared: the class, its codes, and the user's line."""
    link = next((each for each in raised.chain if not _carries(each)), raised.chain[-1] if raised.chain else RaisedLink(()))
    name = next(iter(link.kinds), "").rpartition(".")[2]
    return " ".join([name, *link.codes, *([f"at {raised.place}"] if raised.place else [])])


def _carries(thrown: RaisedLink) -> bool:
    return thrown.kinds[:1] == () or thrown.kinds[0].startswith(known.CARRIERS)


def _root(chain: tuple[RaisedLink, ...]) -> RaisedLink:
    return [chain[0], *takewhile(lambda thrown: not thrown.implied, chain[1:])][-1]


def _passes(thrown: RaisedLink) -> bool:
    codes = list(_codes(thrown))
    if any(PASSES[kind](code) for kind, code in codes if kind in PASSES):
        return True
    if any(kind in EXACT for kind, _ in codes):
        return False
    return any(known.has(known.TRANSIENT, kind) for kind in thrown.kinds) or any(known.has(known.ITSELF, kind) for kind in thrown.kinds[:1])


def _of_data(thrown: RaisedLink) -> bool:
    if any(OF_DATA[kind](code) for kind, code in _codes(thrown) if kind in OF_DATA):
        return True
    of_client = any(kind.partition(".")[0] in known.CLIENTS for kind in thrown.kinds)
    return not of_client and any(known.has(known.DATA, kind) for kind in thrown.kinds)


def _codes(thrown: RaisedLink) -> Iterator[tuple[str, str]]:
    for code in thrown.codes:
        kind, _, value = code.partition(":")
        yield kind, value


EXACT = {"aws", "sql", "mysql", "http", "sqlite"}  # say more than the class: OperationalError is also an index entry that is too long
Judges = dict[str, Callable[[str], bool]]
PASSES: Judges = {
    "aws": lambda code: bool(known.AWS.fullmatch(code)),
    "sql": lambda code: bool(known.SQL.fullmatch(code)),
    "mysql": known.MYSQL.__contains__,
    "mongo": known.MONGO.__contains__,
    "http": lambda code: bool(known.HTTP.fullmatch(code)),
    "grpc": known.GRPC.__contains__,
    "errno": known.ERRNO.__contains__,
    "sqlite": known.SQLITE.__contains__,
    "retriable": lambda code: code == "yes",
    "spark": lambda code: f"spark:{code}" == PASSING,
}
SQLSTATES: Judges = dict.fromkeys(("sql", "sqlstate"), lambda code: bool(known.SQL_DATA.fullmatch(code)))
OF_DATA: Judges = {"aws": lambda code: bool(known.AWS_DATA.fullmatch(code)), "http": known.HTTP_DATA.__contains__} | SQLSTATES
