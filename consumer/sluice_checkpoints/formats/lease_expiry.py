"""Leases that say in their row until when they are held: vmware-go-kcl's and NiFi's. Pure.

The worker of such a lease may live and be silent until then, so a source counts as idle only afterwards. KCL and kinsumer store no such time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.reader import Problem
from sluice_checkpoints.formats.snapshot import Snapshot

LATEST_MILLIS = 7_258_118_400_000  # the year 2200
LONGEST_SECONDS = 900.0  # beyond that a clock is wrong or a worker has to be stopped: it is not waited for


@dataclass(frozen=True, slots=True)
class Promise:
    """A lease: the table and the key of its row, who holds it, until when, and which attribute says so."""

    table: str
    row: str
    owner: str
    attribute: str
    until_millis: int

    def __str__(self) -> str:
        return f"table {self.table}, row {self.row}: {self.owner} holds its lease ({self.attribute})"


def latest(snapshot: Snapshot) -> Promise | None:
    """The lease that runs the longest; None: no row says until when it is leased, in a way that can be read."""
    promises = (promise for promise in _promises(snapshot) if isinstance(promise, Promise))
    return max(promises, key=lambda promise: promise.until_millis, default=None)


def unreadable(snapshot: Snapshot) -> Iterator[Problem]:
    """Rows that say it in another way."""
    return (problem for problem in _promises(snapshot) if isinstance(problem, Problem))


def _promises(snapshot: Snapshot) -> Iterator[Promise | Problem]:
    for (table, label), item in snapshot.by_label.items():
        for owner, attribute, tag, read in LEASES:
            holder, written = item.get(owner, {}).get("S"), item.get(attribute, {}).get(tag)
            if holder is not None and written is not None:
                try:
                    yield Promise(table, label, holder, attribute, read(written))
                except (ValueError, ArithmeticError) as error:
                    yield Problem(table, label, Refused(f"{attribute} {written!r} is not a time: {error}"))


def _rfc3339(written: str) -> int:
    moment = datetime.fromisoformat(written)
    if moment.tzinfo is None:
        raise ValueError("it has no time zone")
    return _bounded(round(moment.timestamp() * 1000))


def _millis(written: str) -> int:
    return _bounded(int(Decimal(written)))


def _bounded(millis: int) -> int:
    if millis >= LATEST_MILLIS:
        raise ValueError("it is after the year 2200")
    return millis


# Attributes of the owner and of the time, the latter's type, and what it means.
LEASES: tuple[tuple[str, str, str, Callable[[str], int]], ...] = (
    ("AssignedTo", "LeaseTimeout", "S", _rfc3339),
    ("leaseOwner", "leaseExpiry", "N", _millis),
)
