"""Carries out the search for a record that `process` cannot deal with (docs/protocol.md, "Poison"): `isolation` decides, this module writes.

It may not start a process or read a clock; the simulation runs this code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.letter import DeadLetter, DeadLetters
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.protocol.isolation import RangeKept, exclude, shorten
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.isolation import BatchFailure, Content, Exclude, Retry, Search, Shorten
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.batches.retention import Replays
from sluice_consumer.shards.ranges import BoundRange, Fetched

POLL_SECONDS = 0.5
HOUR = 3600.0


class TooMuchPoison(Refused):
    """More records were found on which `process` raises than `onError.maxExcludedPerHour` allows. This one is not excluded."""


@dataclass(frozen=True)
class IsolationPorts:
    """What the driver brings.

    Attributes:
        source: reads a bound range again.
        letters: where dead letters go.
        judge: what an exception of `process` is; None: it is none of its own, and ends the epoch.
        told: an exception in words, with its trace.
        quiet: whether no task of this epoch can be working.
        wait: sleeps so many seconds; True: the driver is to drain.
        most: records excluded in an hour, by this epoch.
        state: why a batch came again, each time that it does; None: it passed.
        excluded: which record was excluded.
    """

    source: Replays
    letters: DeadLetters
    judge: Callable[[Exception], BatchFailure | None]
    told: Callable[[Exception], str]
    quiet: Callable[[], bool]
    wait: Callable[[float], bool]
    most: int = 100
    state: Callable[[str | None], None] = lambda _line: None
    excluded: Callable[[str], None] = lambda _line: None


class Isolator:
    """Deals with batches that fail, in one epoch."""

    def __init__(self, consumer: Consumer, ports: IsolationPorts, search: Search) -> None:
        """`search`: as it begins, with nothing known."""
        self._consumer, self._ports, self.search = consumer, ports, search
        self._excluded: list[float] = []  # when, monotonic seconds

    def restricted(self, plan: BatchPlan) -> BatchPlan:
        """The part of a plan that the search wants. A batch that was begun stays as it is."""
        wanted = self.search.wanted()
        if wanted is None or plan.replay:
            return plan
        rows = tuple(row for row in plan.rows if row.id in wanted)
        if rows:
            return replace(plan, rows=rows, limit=max(wanted.values()))
        self.search = self.search.passed({})
        return plan if self.search.wanted() is None else self.restricted(plan)

    def passed(self, committed: Committed) -> None:
        """A batch that `process` returned from was committed."""
        failing = self.search.active or self.search.tries
        self.search = self.search.passed(_content(committed.rows))
        if failing and not self.search.active:
            self._ports.state(None)

    def failed(self, plan: BatchPlan, error: Exception) -> None:
        """Makes what follows ready: the same batch again, or less of it, or its only record in the dead letters.

        Raises:
            `error`: it ends the epoch; so it does while the driver drains, and where no task had bound a record. Fenced, ProtocolViolation, or what
            reading the stream or writing a dead letter raises.
        """
        failure = self._ports.judge(error)
        if failure is None:
            raise error
        while not self._ports.quiet():
            self._wait(POLL_SECONDS, error)
        rows = self._consumer.settled(plan)
        content = _content(rows)
        if not content:
            raise error
        before = self.search
        self.search, step = self.search.failed(content, failure, self._others(content))
        if isinstance(step, Exclude):
            self._exclude(next(row for row in rows if row.records), before.evidence.failures + 1, failure.at, error)
            return
        self._ports.state(_told(plan, content, step, failure))
        if isinstance(step, Shorten):
            for row in rows:
                self._shorten(row, min(row.records, step.keep.get(row.id, 0)))
        self._wait(step.seconds, error)

    def _others(self, content: Content) -> list[str]:
        view = self._consumer.view
        return [row.id for row in view.rows.values() if row.end != END and row.joins <= view.number and row.id not in content]

    def _exclude(self, row: ShardRow, attempts: int, now: float, error: Exception) -> None:
        """The dead letter first; then the record is not read again.

        Raises:
            TooMuchPoison: the limit is reached.
        """
        self._excluded = [at for at in self._excluded if now - at < HOUR]
        if len(self._excluded) >= self._ports.most:
            raise TooMuchPoison(
                f"onError.maxExcludedPerHour: {len(self._excluded)} records went to the dead letters within an hour, and {row.id} has another one at "
                f"{row.first}; find out what is wrong with them, or raise the limit"
            )
        letter = self._letter(row, attempts, error)
        self._ports.letters.write(letter)
        self._consumer.know(exclude(self._consumer.store, self._consumer.epoch, row))
        self._excluded.append(now)
        self._ports.state(None)
        self._ports.excluded(
            f"{row.id}: record {letter.sequence}/{letter.sub} failed {attempts} times; it is in the dead letters, and not in batch {row.batch}"
        )

    def _shorten(self, row: ShardRow, keep: int) -> None:
        if keep < row.records:
            kept = part(self._read(row), row, keep)
            self._consumer.know(shorten(self._consumer.store, self._consumer.epoch, row, kept))

    def _letter(self, row: ShardRow, attempts: int, error: Exception) -> DeadLetter:
        assert self._consumer.row is not None  # noqa: S101 - begin() set it
        assert self._consumer.identity is not None  # noqa: S101 - begin() set it
        ((sequence, sub, key, data, arrival),) = self._read(row).columns.rows()
        consumer, stream = self._consumer.row.consumer_id, self._consumer.identity.name
        return DeadLetter(consumer, stream, row.id, sequence, sub, arrival, key, data, row.batch, attempts, self._ports.told(error))

    def _read(self, row: ShardRow) -> Fetched:
        return self._ports.source.replay(BoundRange.of(row))

    def _wait(self, seconds: float, error: Exception) -> None:
        if seconds and self._ports.wait(seconds):
            raise error


def part(fetched: Fetched, row: ShardRow, keep: int) -> RangeKept:
    """The first `keep` user records of a range that holds more. It was read up to just before the arrival of the first that is let go."""
    records = list(fetched.columns.rows())
    read_to = max(0, records[keep][4] - 1)
    if not keep:
        return RangeKept(row.start, None, 0, 0, read_to)
    (sequence, sub, *_), following = records[keep - 1], records[keep][0]
    end = Position.after(sequence, sub if following == sequence else None)
    size = sum(len(data) for _, _, _, data, _ in records[:keep])
    return RangeKept(end, row.first, keep, size, read_to)


def _content(rows: Sequence[ShardRow]) -> Content:
    return {row.id: row.records for row in rows if row.records}


def _told(plan: BatchPlan, content: Content, step: Retry | Shorten, failure: BatchFailure) -> str:
    count, shards = sum(content.values()), len(content)
    kept = sum(step.keep.values()) if isinstance(step, Shorten) else count
    what = f"the same {count}" if kept == count else f"{kept} of its {count}" if kept else f"others before its {count}"
    why = "it cannot be helped but by waiting" if failure.transient else failure.error
    return f"batch {plan.number} failed ({why}); {what} records of {shards} shards come again in {step.seconds:g} s"
