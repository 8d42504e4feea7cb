"""What `replays` found. Plain values, which say in a failed assertion what happened where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

SHOWN = 3


class Failed(Exception):
    """What a write raises where a failure of `process` is tried, as a record that cannot be processed makes it do."""


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
    """The sink does not hold each record once after a kill and a replay, or after a failure and a replay in two batches.

    Attributes:
        point: where `process` was killed, or raised.
        missing: what the undisturbed run stored, and this one did not.
        extra: what this one stored beyond that.
        error: why the replay failed, or the kill could not be tried; empty if neither did.
        shortened: `process` raised there; half of the batch came again, and the other half under the next number.
    """

    point: KillPoint
    missing: tuple[Any, ...] = ()
    extra: tuple[Any, ...] = ()
    error: str = ""
    shortened: bool = False

    def __str__(self) -> str:
        problems = [_several("missing", self.missing), _several("too many", self.extra), self.error]
        how = "shortened after a failure" if self.shortened else "killed"
        return f"{how} {self.point}: {'; '.join(filter(None, problems))}"


def _several(what: str, records: tuple[Any, ...]) -> str:
    if not records:
        return ""
    shown = ", ".join(map(repr, records[:SHOWN])) + (", …" if len(records) > SHOWN else "")
    return f"{len(records)} {what} ({shown})"


def compared(point: KillPoint, wanted: Counter[Any], held: Iterable[Any]) -> list[Miscount]:
    """None, or one: what a sink holds, beside what it should hold."""
    there = counted(held)
    missing, extra = tuple((wanted - there).elements()), tuple((there - wanted).elements())
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
        shortened: where `process` raised, and its batch came again in two.
    """

    points: tuple[KillPoint, ...]
    failures: tuple[Miscount, ...]
    shortened: tuple[KillPoint, ...] = ()

    @property
    def once(self) -> bool:
        """Whether the sink held each record once after every kill, failure and replay."""
        return not self.failures

    def check(self, *, isolate: bool = True) -> None:
        """Fails a test, with a line for each moment that went wrong.

        Args:
            isolate: False: the consumer has no `onError`, or sets `onError.isolate` to false. No batch of it is shortened, so those do not count.

        Raises:
            AssertionError: the sink did not hold each record once after some kill or failure, and replay.
        """
        counting = self if isolate else ReplayVerdict(self.points, tuple(each for each in self.failures if not each.shortened))
        if counting.failures:
            raise AssertionError(str(counting))

    def __str__(self) -> str:
        tried = _number(self.points, "kill", "kills") + (
            f" and {_number(self.shortened, 'shortened batch', 'shortened batches')}" if self.shortened else ""
        )
        if self.once:
            return f"each record once after {tried}"
        head = f"not each record once after {len(self.failures)} of {tried}, each followed by a replay"
        return "\n  ".join([head, *map(str, self.failures)])


def _number(points: tuple[KillPoint, ...], singular: str, several: str) -> str:
    return f"{len(points)} {singular if len(points) == 1 else several}"
