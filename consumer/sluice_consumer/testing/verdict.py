"""What `replays` found. Plain values, which say in a failed assertion what happened where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

SHOWN = 3


class Killed(BaseException):
    """Ends `process` where a kill is tried. No `except Exception` catches it, as none survives the end of a process."""


@dataclass(frozen=True)
class KillPoint:
    """A moment in a run of `process`.

    Attributes:
        when: `before`, `after` or `half-way through` the write, seen from the sink: the reply to a write is lost `after` it.
        what: the write, such as `DataFrameWriter.parquet`.
        where: file and line in the user's code; empty where there is none.
        nth: which one of its kind in this run, from 1.
    """

    when: str
    what: str
    where: str = field(default="", compare=False)
    nth: int = 1

    def __str__(self) -> str:
        times = f" (number {self.nth})" if self.nth > 1 else ""
        return f"{self.when} {self.what}{times}" + (f" at {self.where}" if self.where else "")


@dataclass(frozen=True)
class Miscount:
    """The sink does not hold each record once after a kill and a replay.

    Attributes:
        point: where `process` was killed.
        missing: what the undisturbed run stored, and this one did not.
        extra: what this one stored beyond that.
        error: why the replay failed, or the kill could not be tried; empty if neither did.
    """

    point: KillPoint
    missing: tuple[Any, ...] = ()
    extra: tuple[Any, ...] = ()
    error: str = ""

    def __str__(self) -> str:
        found = [_several("missing", self.missing), _several("too many", self.extra), self.error]
        return f"killed {self.point}: {'; '.join(filter(None, found))}"


def _several(what: str, records: tuple[Any, ...]) -> str:
    if not records:
        return ""
    shown = ", ".join(map(repr, records[:SHOWN])) + (", …" if len(records) > SHOWN else "")
    return f"{len(records)} {what} ({shown})"


def compared(point: KillPoint, wanted: Counter[Any], held: Iterable[Any]) -> list[Miscount]:
    """None, or one: what a sink holds, beside what it should hold."""
    found = counted(held)
    missing, extra = tuple((wanted - found).elements()), tuple((found - wanted).elements())
    return [Miscount(point, missing, extra)] if missing or extra else []


def counted(held: Iterable[Any]) -> Counter[Any]:
    """Records by how often they are there; those that cannot be keys are compared by what Python prints of them."""
    return Counter(record if _hashable(record) else repr(record) for record in held)


def _hashable(record: Any) -> bool:
    try:
        hash(record)
    except TypeError:
        return False
    return True


@dataclass(frozen=True)
class ReplayVerdict:
    """Of all kills.

    Attributes:
        points: where `process` was killed, in the order of the undisturbed run.
        failures: those after which a replay did not give each record once.
    """

    points: tuple[KillPoint, ...]
    failures: tuple[Miscount, ...]

    @property
    def once(self) -> bool:
        """Whether the sink held each record once after every kill and replay."""
        return not self.failures

    def check(self) -> None:
        """Fails a test, with a line for each failure.

        Raises:
            AssertionError: the sink did not hold each record once after some kill and replay.
        """
        if self.failures:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        if self.once:
            return f"each record once after {len(self.points)} kills"
        head = f"not each record once after {len(self.failures)} of {len(self.points)} kills, each followed by a replay"
        return "\n  ".join([head, *map(str, self.failures)])
