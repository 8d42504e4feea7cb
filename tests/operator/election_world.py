"""Candidates, one Lease and virtual time: calls take seconds, get lost, processes are paused, clocks run unevenly.

While one candidate waits for a reply, the others take their turns. At every moment at most one of them may lead.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import Unavailable
from sluice_operator.election.candidate import Candidate, ElectionTimings, LeaseRef, LostLeadership

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

Json = dict[str, Any]

WHERE = ("Lease", "sluice-system", "sluice")
TERMS = ElectionTimings()
BEGIN = datetime(2026, 11, 21, 10, tzinfo=UTC)
STEP = 0.5
T = TypeVar("T")


class Process:
    def __init__(self, town: Town, number: int, make: type[Candidate], terms: ElectionTimings) -> None:
        rate, offset = 0.9 + town.dice.random() / 5, town.dice.random() * 1e6
        post = LeaseRef(*WHERE[1:], identity=f"operator-{number}")
        self.candidate = make(cast("Any", Wire(town, self)), post, terms, lambda: offset + rate * town.now)
        self.town, self.due, self.busy, self.alive = town, town.now + town.dice.random() * 2, False, True

    def turn(self) -> None:
        self.busy = True
        try:
            self.due = self.town.now + self.candidate.acquire_or_renew()
        except LostLeadership:
            self.alive = False
        self.busy = False


class Wire:
    def __init__(self, town: Town, process: Process) -> None:
        self._town, self._process = town, process

    def get(self, *name: str) -> Json | None:
        return self._send(lambda: self._town.memory.get(*name))

    def create(self, body: Json) -> Json:
        return self._send(lambda: self._town.memory.create(body))

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        return self._send(lambda: self._town.memory.patch(kind, namespace, name, changes))

    def _send(self, call: Callable[[], T]) -> T:
        town = self._town
        town.wait(town.delay())
        if town.lost():
            raise Unavailable("the request was lost")
        answer = call()
        town.wait(town.delay())
        if town.lost():
            raise Unavailable("the reply was lost")
        return answer


class Town:
    """Everything in it. `rough` makes calls slow and lossy."""

    def __init__(self, dice: Random, make: type[Candidate] = Candidate, terms: ElectionTimings = TERMS) -> None:
        self.dice, self.make, self.terms = dice, make, terms
        self.now, self.rough, self.led = 0.0, False, 0
        self.memory = MemoryCluster(lambda: BEGIN + timedelta(seconds=self.now))
        self.numbers = itertools.count(1)
        self.processes: list[Process] = []

    def ship(self) -> None:
        kind, namespace, name = WHERE
        self.memory.create({"kind": kind, "metadata": {"namespace": namespace, "name": name}})

    def lease(self) -> Json:
        return (self.memory.get(*WHERE) or {}).get("spec") or {}

    def unship(self) -> None:
        if there := self.memory.get(*WHERE):
            self.memory.delete(*WHERE, there["metadata"]["uid"])

    def join(self) -> Process:
        process = Process(self, next(self.numbers), self.make, self.terms)
        self.processes.append(process)
        return process

    def leaders(self) -> list[Process]:
        return [process for process in self.processes if process.alive and process.candidate.leads()]

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            self.check()
            for process in self.processes:
                if process.alive and not process.busy and process.due <= self.now:
                    process.turn()
            if self.now >= end:
                return
            self.now = min(self.now + STEP, end)

    def check(self) -> None:
        leaders = [process.candidate._ref.identity for process in self.leaders()]
        assert len(leaders) <= 1, f"{leaders} lead at {self.now:.1f} s"
        self.led += bool(leaders)

    def delay(self) -> float:
        """Seconds on the wire, or of a paused process."""
        if not self.rough:
            return 0
        return self.dice.choice([0, 0, 0, 0.5, 1, 4, 12, 40])

    def lost(self) -> bool:
        return self.rough and self.dice.random() < 0.1


def rough_hours(dice: Random, make: type[Candidate] = Candidate, terms: ElectionTimings = TERMS) -> Town:
    """Two to three candidates, bad connections, deaths, a Lease that is missing at first or deleted once; then a calm minute."""
    town = Town(dice, make, terms)
    once = [town.unship]
    if dice.random() < 0.8:
        town.ship()
    else:
        once.clear()
    for _ in range(3):
        town.join()
    town.rough = True
    for _ in range(12):
        town.wait(dice.choice([1, 5, 20, 60]))
        happening = dice.random()
        if happening < 0.3 and town.processes:
            dice.choice(town.processes).alive = False  # SIGKILL, perhaps in the middle of a call
        if happening > 0.9 and once:
            once.pop()()
        while sum(process.alive for process in town.processes) < 2:
            town.join()
    town.rough = False
    town.wait(70)
    return town
