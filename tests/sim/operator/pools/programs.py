"""What runs in pods: the driver of a pool, which follows the seats of its pod by the product's own rule, and a driver of its own. Runs are models."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sluice_consumer.exits.ending import Ending
from sluice_consumer.group.seats import REPORT, BeginSeat, SeatBook, SeatKey, without_seat

Json = dict[str, Any]
DRAIN = timedelta(seconds=8)


@dataclass
class Run:
    """One consumer at work: its attempt and spec, since when, and since when it drains."""

    attempt: int
    spec: str
    began: datetime
    draining: datetime | None = None


@dataclass
class PoolDriver:
    """The process in the pod with this uid: the product's own book of seats, over runs that are models.

    Attributes:
        begun: by consumer, the highest attempt that this process has begun or refused.
        forgets: a sabotage: it does not remember what it has begun.
    """

    uid: str
    begun: dict[str, int] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    fails: set[str] = field(default_factory=set)
    forgets: bool = False
    book: SeatBook = field(init=False)

    def __post_init__(self) -> None:
        self.book = SeatBook(self.uid)

    def tick(self, notes: Json, now: datetime, *, term: bool) -> Json:
        if self.forgets:
            self.book.highest = {}
            self.book.ended = {key: how for key, how in self.book.ended.items() if f"{REPORT}{key}" in notes}
        for one in self.book.changes(notes, term=term):
            if isinstance(one, BeginSeat):
                self.runs[one.seat.key.consumer] = Run(one.seat.key.attempt, one.seat.spec_hash, now)
            else:
                self.runs[one.key.consumer].draining = now
        self.begun |= self.book.highest
        said: Json = dict.fromkeys(without_seat(notes, self.book.running))
        for key, how in self.book.ended.items():
            if f"{REPORT}{key}" not in notes:
                said |= _exit(str(key), now, how.code, how.reason)
        for consumer, run in list(self.runs.items()):
            said |= self._run(consumer, run, now)
        return said

    def _run(self, consumer: str, run: Run, now: datetime) -> Json:
        key = SeatKey(consumer, run.attempt)
        if consumer in self.fails:
            self.fails.discard(consumer)
            return self._end(key, now, 1, "Failed")
        if run.draining is not None and now - run.draining >= DRAIN:
            return self._end(key, now, 0, "Drained")
        figures = {"number": int(now.timestamp()) // 15, "phase": "Draining" if run.draining else "Running", "began": run.began.isoformat()}
        return {f"{REPORT}{key}": json.dumps({**figures, "openShards": 1, "heldShards": 1, "executors": 2, "generation": run.attempt})}

    def _end(self, key: SeatKey, now: datetime, code: int, reason: str) -> Json:
        began = self.runs.pop(key.consumer).began
        self.book.over(key, Ending(code, reason, ""))
        return _exit(str(key), now, code, reason, began)


def _exit(key: str, now: datetime, code: int, reason: str, began: datetime | None = None) -> Json:
    words: Json = {"exit": {"code": code, "reason": reason, "message": "sink is full" if code else "", "at": now.isoformat()}}
    return {REPORT + key: json.dumps(words | ({"began": began.isoformat()} if began else {}))}


@dataclass
class OwnDriver:
    uid: str
    consumer: str
    spec: str
    draining: datetime | None = None

    def tick(self, now: datetime, *, term: bool) -> Json:
        if term and self.draining is None:
            self.draining = now
        words = {"number": int(now.timestamp()) // 15, "phase": "Running", "openShards": 1, "heldShards": 1, "executors": 1}
        return {"sluice.dev/report": json.dumps(words)}
