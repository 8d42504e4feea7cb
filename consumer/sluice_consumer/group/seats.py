"""The seats in the pod of a pool, as the process in it follows them (docs/pools.md, "A seat"). Pure.

Any account that may annotate the pod may write them, so they are bounded, and a bad one stops nobody else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_consumer import config as configs
from sluice_consumer.config import Config
from sluice_consumer.exits.ending import Ending, ending_of

SEAT, LEAVE, REPORT = "seat.sluice.dev/", "leave.sluice.dev/", "report.sluice.dev/"
KEY = re.compile(r"([a-z0-9-]{1,64})\.([1-9]\d{0,8})")
SEATS = 256  # that are read of a pod
OF_THE_POOL = ("executors", "metrics", "sparkConf")  # settings that one process has once
FIELDS = {"name": (str, "text"), "specHash": (str, "text"), "tableMade": (bool, "true or false"), "config": (dict, "an object")}
REQUIRED = ("name", "config")
Notes = Mapping[str, str]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class SeatKey:
    """An attempt of a consumer, which is a KinesisConsumer's uid."""

    consumer: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.consumer}.{self.attempt}"

    @staticmethod
    def parse(text: str) -> SeatKey | None:
        """What `str` made; None: it did not."""
        named = KEY.fullmatch(text)
        return SeatKey(named[1], int(named[2])) if named else None


@dataclass(frozen=True)
class SeatLimits:
    """What the pool allows a consumer, and gives it.

    Attributes:
        lease: the shortest lease, in seconds. drain: the longest drain, in seconds.
        spark_conf: of the pool. It is every consumer's: checks find the classes of a sink by it.
    """

    lease: float = 20.0
    drain: float = 120.0
    spark_conf: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MemberSeat:
    """What the operator wants to run.

    Attributes:
        config: of the consumer. text: the same, as JSON.
        spec_hash: of its spec. made: a driver has worked on its checkpoint table before.
    """

    key: SeatKey
    config: Config
    text: str
    spec_hash: str = ""
    made: bool = False


def seat_of(key: SeatKey, written: Json, limits: SeatLimits) -> MemberSeat:
    """A seat as it is written.

    Raises:
        Refused: a field of it is wrong; the message names the field.
    """
    for name, (kind, words) in FIELDS.items():
        value = written.get(name)
        if not isinstance(value, kind) and (value is not None or name in REQUIRED):
            raise Refused(f"{SEAT}{key}: {name}: {'missing' if value is None else f'must be {words}'}")
    given = {**written["config"], "name": written["name"]}
    if mine := next((name for name in OF_THE_POOL if given.pop(name, None)), None):
        raise Refused(f"{mine}: belongs to the pool; remove it from this consumer, or remove spec.pool to run the consumer in a driver of its own")
    given["sparkConf"] = dict(limits.spark_conf)
    config = configs.parse(json.dumps(given))
    if config.lease_duration_seconds < limits.lease:
        least = f"must be at least {limits.lease:g} in this pool, not {config.lease_duration_seconds:g}"
        raise Refused(f"leaseDurationSeconds: {least}; raise it, or remove spec.pool to run the consumer in a driver of its own")
    config = replace(config, drain_timeout_seconds=min(config.drain_timeout_seconds, limits.drain))
    text = json.dumps(given | {"drainTimeoutSeconds": config.drain_timeout_seconds})
    return MemberSeat(key, config, text, written.get("specHash") or "", bool(written.get("tableMade")))


def _object(key: SeatKey, text: str) -> Json:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{SEAT}{key}: is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise Refused(f"{SEAT}{key}: must be an object")
    if not isinstance(document.get("pod"), str):
        raise Refused(f"{SEAT}{key}: pod: must be the uid of the pod")
    return document


def drained(why: str) -> Ending:
    """Of a seat that never began."""
    return Ending(0, "Drained", why)


LEFT = drained("the consumer was asked to leave before it began")
LATE = drained("a later or the same attempt of this consumer began before in this process")
CLOSED = drained("the pod was asked to end before the consumer began")


@dataclass(frozen=True, slots=True)
class BeginSeat:
    """Take the lease and run it, once."""

    seat: MemberSeat


@dataclass(frozen=True, slots=True)
class DrainSeat:
    """Finish its open batch, and release the lease."""

    key: SeatKey


@dataclass
class SeatBook:
    """Which seats run in this process, and how others ended.

    Attributes:
        pod: uid of this process' pod.
        highest: by consumer, the highest attempt that began or was answered. Never forgotten: a late write of a lower one begins nothing.
        running: seats that run, and whether they drain. ended: how others ended, for as long as their annotation is there.
    """

    pod: str
    limits: SeatLimits = field(default_factory=SeatLimits)
    highest: dict[str, int] = field(default_factory=dict)
    running: dict[SeatKey, bool] = field(default_factory=dict)
    ended: dict[SeatKey, Ending] = field(default_factory=dict)

    def changes(self, notes: Notes, *, term: bool = False) -> list[BeginSeat | DrainSeat]:
        """What to do now. The highest attempt of a consumer comes first.

        Args:
            notes: all annotations of the pod, as they are now.
            term: this process was asked to end.
        """
        keys = _keys(notes)
        self.ended = {key: how for key, how in self.ended.items() if key in keys}
        todo: list[BeginSeat | DrainSeat] = []
        for key in sorted(self.running):
            if not self.running[key] and (term or key not in keys or f"{LEAVE}{key}" in notes):
                self.running[key] = True
                todo.append(DrainSeat(key))
        for key in sorted(keys - self.running.keys() - self.ended.keys(), reverse=True):
            if (seat := self._new(key, notes, term=term)) is not None:
                self.running[key] = False
                todo.append(BeginSeat(seat))
        return todo

    def _new(self, key: SeatKey, notes: Notes, *, term: bool) -> MemberSeat | None:
        """The seat, if it is to begin now. One that is not readable says nothing about the attempts of its consumer."""
        try:
            written = _object(key, notes[f"{SEAT}{key}"])
        except Refused as error:
            self.ended[key] = ending_of(error)
            return None
        if written["pod"] != self.pod:
            return None  # a copy of another pod, with its annotations
        if (why := self._unwanted(key, notes, term=term)) is not None:
            self._answer(key, why)
            return None
        if any(seat_key.consumer == key.consumer for seat_key in self.running):
            return None  # once that one has ended
        try:
            seat = seat_of(key, written, self.limits)
        except (Refused, RecursionError) as error:
            self._answer(key, ending_of(error))
            return None
        self.highest[key.consumer] = key.attempt
        return seat

    def _unwanted(self, key: SeatKey, notes: Notes, *, term: bool) -> Ending | None:
        if key.attempt <= self.highest.get(key.consumer, 0):
            return LATE
        if term:
            return CLOSED
        return LEFT if f"{LEAVE}{key}" in notes else None

    def _answer(self, key: SeatKey, how: Ending) -> None:
        self.ended[key] = how
        self.highest[key.consumer] = max(key.attempt, self.highest.get(key.consumer, 0))

    def over(self, key: SeatKey, how: Ending) -> None:
        """Its run has ended."""
        del self.running[key]
        self.ended[key] = how


def _keys(notes: Notes) -> set[SeatKey]:
    names = sorted(name for name in notes if name.startswith(SEAT))[:SEATS]
    return {key for name in names if (key := SeatKey.parse(name.removeprefix(SEAT)))}


def without_seat(notes: Notes, running: Mapping[SeatKey, bool]) -> list[str]:
    """Reports of seats that are gone, whose runs have ended."""
    keys = {f"{REPORT}{key}" for key in _keys(notes) | running.keys()}
    return [name for name in notes if name.startswith(REPORT) and name not in keys]
