"""An operator's way to the API server, and everything that can go wrong on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import ApiError, Labels, Rejected, Unavailable

if TYPE_CHECKING:
    from steering.admission import Admission

Json = dict[str, Any]
T = TypeVar("T")
Judge = Callable[["Line", str, Json], Callable[[], None]]


@dataclass(frozen=True)
class Guards:
    """What stands between an operator and the server: an observer with the true time, and an admission policy."""

    judge: Judge
    admission: Admission
    time: Callable[[], datetime]


class Crash(BaseException):
    """The process died right after a write; nothing in it may catch this."""


@dataclass
class Faults:
    """What will happen to the calls of one operator, by number; the numbers outlive its process.

    Attributes:
        calls: calls so far, of any kind.
        writes: those that changed something, events apart.
        crash: writes after which the process dies.
        lose: writes whose reply is lost.
        late: writes that time out and are carried out three seconds later.
        down: calls that are answered with 429 or 5xx, and change nothing.
        refuse: writes that are answered with 403.
        unsaid: a status was among them since this was asked last: it is written again half a minute later.
        stall: calls before which the process stands still, and what happens meanwhile.
        slow: calls whose answer takes a while. Meanwhile the watches of the same process go on; and what else happens.
        queue: writes that are on their way.
        done: verb and kind of each call that was carried out, reads and events too.
    """

    calls: int = 0
    writes: int = 0
    crash: set[int] = field(default_factory=set)
    lose: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)
    down: set[int] = field(default_factory=set)
    refuse: set[int] = field(default_factory=set)
    unsaid: bool = False
    stall: dict[int, Callable[[], None]] = field(default_factory=dict)
    slow: dict[int, Callable[[], None]] = field(default_factory=dict)
    queue: list[tuple[int, Callable[[], object]]] = field(default_factory=list)
    done: list[tuple[str, str]] = field(default_factory=list)

    def was_unsaid(self) -> bool:
        asked, self.unsaid = self.unsaid, False
        return asked

    def end(self) -> None:
        for numbers in (self.crash, self.lose, self.late, self.down, self.refuse, self.stall, self.slow):
            numbers.clear()


class Line:
    """Adapter of `Cluster` in front of the in-memory fake. `stalled`: the present pass stood still, or waited for an answer."""

    def __init__(self, server: MemoryCluster, faults: Faults, guards: Guards, began: datetime) -> None:
        self.server, self.faults, self._guards, self.began = server, faults, guards, began
        self.stalled = False
        self._asked: dict[Any, list[datetime]] = {}

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        return self._read("get", kind, lambda: self.server.get(kind, namespace, name))

    def list(self, kind: str, namespace: str, labels: Labels) -> list[Json]:
        return self._read("list", kind, lambda: self.server.list(kind, namespace, labels))

    def all(self, kind: str) -> Iterator[Json]:
        """For an HTTP server in memory, which chooses by labels itself."""
        return self._read("list", kind, lambda: self.server.all(kind))

    def create(self, body: Json) -> Json:
        return self._write("create", body, lambda: self.server.create(body))

    def check(self, body: Json) -> None:
        self._read("check", body["kind"], lambda: self.server.check(body))

    def replace_status(self, body: Json) -> Json:
        return self._write("status", body, lambda: self.server.replace_status(body))

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        body = {"kind": kind, **changes, "metadata": {**changes.get("metadata", {}), "namespace": namespace, "name": name}}
        return self._write("patch", body, lambda: self.server.patch(kind, namespace, name, changes))

    def delete(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        body = {"kind": kind, "metadata": {"namespace": namespace, "name": name, "uid": uid}, "grace": grace}
        self._write("delete", body, lambda: self.server.delete(kind, namespace, name, uid, grace))

    def _read(self, verb: str, kind: str, call: Callable[[], T]) -> T:
        answer = self._call(call)
        self.faults.done.append((verb, kind))
        return answer

    def _call(self, call: Callable[[], T]) -> T:
        self.faults.calls += 1
        self._wait(self.faults.stall)
        if self.faults.calls in self.faults.down:
            raise Unavailable("429, or 500, or nobody listens")
        answer = call()
        self._wait(self.faults.slow)
        return answer

    def _wait(self, planned: dict[int, Callable[[], None]]) -> None:
        if meanwhile := planned.pop(self.faults.calls, None):
            self.stalled = True
            meanwhile()

    def _write(self, verb: str, body: Json, call: Callable[[], T]) -> T:
        return self._call(lambda: self._written(verb, body, call))

    def _written(self, verb: str, body: Json, call: Callable[[], T]) -> T:
        if body["kind"] == "Event":
            return self._done(verb, body, call)
        faults = self.faults
        faults.writes += 1
        if faults.writes in faults.refuse:
            faults.unsaid |= verb == "status"
            raise Rejected("Forbidden", "exceeded quota")
        self._guards.admission.refuses(verb, body, self._asked)
        if faults.writes in faults.late:
            faults.queue.append((3, lambda: self._done(verb, body, call)))
            raise Unavailable("no answer in time")
        answer = self._done(verb, body, call)
        if faults.writes in faults.crash:
            raise Crash
        if faults.writes in faults.lose:
            raise Unavailable("the reply was lost")
        return answer

    def _done(self, verb: str, body: Json, call: Callable[[], T]) -> T:
        judgement, before = self._guards.judge(self, verb, body), self.server.version
        answer = call()
        self.faults.done.append((verb, body["kind"]))
        if self.server.version != before:
            judgement()
        elif body["kind"] != "Event":
            self._guards.admission.idle(verb, body, self._asked)
        return answer

    def arrive(self) -> None:
        waiting, self.faults.queue = self.faults.queue, []
        for seconds, call in waiting:
            if seconds > 0:
                self.faults.queue.append((seconds - 1, call))
                continue
            self.stalled = True
            with suppress(ApiError):  # nobody waits for the answer any more
                call()
