"""The ports of one simulated process: in-memory fakes behind a turnstile, with the faults the scheduler asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from typing import TypeVar

from simulation.stream import Stream
from simulation.turnstile import Process, Waiting

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.protocol.rows import Item
from sluice_checkpoints.protocol.table import Check, Member, Outcome, Put, Transaction, Write
from sluice_checkpoints.stream.model import ShardList, StreamIdentity
from sluice_checkpoints.stream.model import ShardPlace as StreamPlace
from sluice_consumer.shards.bind import ShardSource
from sluice_consumer.shards.ranges import BoundRange, Fetched, FetchRequest, Limits
from sluice_lab.fakes.table import MemoryTable

T = TypeVar("T")
# What may go wrong with a call: no answer and no effect; an effect and no answer; an effect, and the answer only to the second try; the service makes
# the caller wait; the answer is an old one, where the service may give such (ListShards; every read of the table is strongly consistent).
UNAVAILABLE, LOST, RETRIED, THROTTLED, STALE = "unavailable", "lost", "retried", "throttled", "stale"
TORN = "torn"  # a transaction takes effect row by row, and scans see a part of it: DynamoDB isolates the two by rows only
LATE = "late"  # of a listing: it still has shards that expired
FAULTS = (UNAVAILABLE, LOST, RETRIED, THROTTLED, STALE, LATE)
THROTTLE_SECONDS = 1.5  # less than a heartbeat's patience (a sixth of the shortest lease); more of it is UNAVAILABLE


def label(write: Write) -> str:
    """What step of the protocol a write is, for traces."""
    if isinstance(write, Put):
        return f"put {write.key}"
    names = {path[0] for path in write.put} | set(write.add)
    known = {"joins": "move", "lastReset": "done", "committed": "commit", "token": "take", "counter": "beat"}
    known |= {"batch": "bind", "readers": "register", "generation": "fence"}
    if "note" in names and "batch" not in names:
        return f"forfeit {write.key}"
    if ("letters",) in {*write.put, *write.remove} and "committed" not in names:
        return f"named {write.key}"
    if ("excluded",) in write.put:
        return f"exclude {write.key}"
    if "end" in names and names.isdisjoint({"batch", "joins"}):
        return f"shorten {write.key}"
    step = next((step for name, step in known.items() if name in names), "set")
    return f"{'close' if step == 'bind' and write.put.get(('readers',)) == {} else step} {write.key}"


class Client:
    """One process's connection to the table. Implements `Table`; as the real adapter, it may make a write again whose reply was lost."""

    def __init__(self, process: Process, table: MemoryTable, now: Callable[[], float], picks: Sequence[int] = (0,)) -> None:
        """`picks`: which of the calls that are left goes next, where many are made side by side; over and over."""
        self._process, self._table, self._now, self._picks = process, table, now, cycle(picks)
        self.page = 0

    @property
    def name(self) -> str:
        return self._table.name

    def _call(self, what: str) -> str | None:
        fault = self._process.pause(what)
        if fault == UNAVAILABLE:
            raise ServiceUnavailable(f"{what}: injected")
        if fault == THROTTLED:
            self._process.pause(f"throttled {what}", Waiting(wake=self._now() + THROTTLE_SECONDS))
        return fault

    def get(self, key: str) -> Item | None:
        self._call(f"get {key}")
        return self._table.get(key)

    def batch_get(self, keys: Sequence[str]) -> dict[str, Item]:
        self._call("read")
        return self._table.batch_get(keys)

    def scan(self) -> Iterator[Item]:
        """See `Table`. As in DynamoDB, what is written meanwhile may be found or not: a scan is no snapshot."""
        self._call("scan")
        return self._pages() if self.page else self._table.scan()

    def _pages(self) -> Iterator[Item]:
        last = ""
        while rows := sorted((row for row in self._table.scan() if row["id"] > last), key=lambda row: str(row["id"]))[: self.page]:
            yield from rows
            last = rows[-1]["id"]
            self._call(f"scan after {last}")

    def write(self, write: Write) -> Outcome:
        fault = self._call(label(write))
        outcome = self._table.write(write)
        if fault == RETRIED:
            self._process.pause(f"retry {label(write)}")
            outcome = self._table.write(write)
        if fault == LOST:
            raise ServiceUnavailable(f"{label(write)}: injected, after it took effect")
        return outcome

    def transact(self, members: Sequence[Member]) -> Transaction:
        written = [m.key for m in members if not isinstance(m, Check)]
        fault = self._call(f"transact {written}")
        outcome = self._torn(members) if fault == TORN else self._table.transact(members)
        if fault == RETRIED:
            self._process.pause(f"retry transact {written}")
            outcome = self._table.transact(members)
        if fault == LOST:
            raise ServiceUnavailable(f"transact {written}: injected, after it took effect")
        return outcome

    def _torn(self, members: Sequence[Member]) -> Transaction:
        """A transaction that will be applied. What its first rows say is seen before the others say it; the service ends it, whoever dies."""
        first, *others = [replace(member, when=()) for member in members if not isinstance(member, Check)]
        checks: list[Member] = [Check(member.key, member.when) for member in members if not isinstance(member, Check)]
        outcome = self._table.transact(
            [*(member for member in members if isinstance(member, Check)), *checks[1:], replace(first, when=checks[0].when)]
        )
        try:
            if outcome.applied:
                self._process.pause(f"rest of transact {[member.key for member in members]}")
        finally:
            if outcome.applied and others:
                self._table.transact(others)
        return outcome

    def side_by_side(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        """See `Table`. The calls take effect one after the other in any order; the process may be killed between any two of them.

        After an error some more are made: those that were under way.
        """
        left, found, errors = dict(enumerate(calls)), dict[int, T](), dict[int, Exception]()
        while left and not (errors and next(self._picks) % 2 == 0):
            index = list(left)[next(self._picks) % len(left)]
            try:
                found[index] = left.pop(index)()
            except Exception as error:  # noqa: BLE001 - raised below; a kill is none
                errors[index] = error
        if errors:
            raise errors[min(errors)]
        return [found[index] for index in sorted(found)]


class Catalog:
    def __init__(self, process: Process, stream: Stream, *, late: bool = True) -> None:
        """`late`: it may be given shards that expired."""
        self._process, self._stream, self._late = process, stream, late

    def describe(self) -> StreamIdentity:
        self._process.pause("describe")
        return self._stream.describe()

    def list_shards(self) -> ShardList:
        fault = self._process.pause("list")
        if fault == UNAVAILABLE:
            raise ServiceUnavailable("list: injected")
        odd = {STALE: self._stream.listed_before} | ({LATE: self._stream.listed_late} if self._late else {})
        return odd.get(fault or "", self._stream.list_shards)()

    def disowned(self, places: Iterable[StreamPlace]) -> dict[StreamPlace, str]:
        if self._process.pause("ask Kinesis about places") == UNAVAILABLE:
            raise ServiceUnavailable("ask Kinesis about places: injected")
        return self._stream.disowned(places)


class Source:
    def __init__(self, process: Process, source: ShardSource, suspects: Callable[[FetchRequest, str], None] = lambda _place, _note: None) -> None:
        """`suspects`: hears of each possible loss, as it is seen."""
        self._process, self._source, self._suspects = process, source, suspects

    def fetch(self, place: FetchRequest, limits: Limits) -> Fetched:
        if self._process.pause(f"fetch {place.shard_id}") == UNAVAILABLE:
            raise ServiceUnavailable("fetch: injected")
        fetched = self._source.fetch(place, limits)
        if fetched.note:
            self._suspects(place, fetched.note)
        return fetched

    def replay(self, bound: BoundRange) -> Fetched:
        if self._process.pause(f"replay {bound.shard_id}") == UNAVAILABLE:
            raise ServiceUnavailable("replay: injected")
        return self._source.replay(bound)
