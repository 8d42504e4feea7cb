"""Carries out the search for a record that `process` cannot deal with (docs/protocol.md, "Poison"): `search` decides, this module writes.

It may not start a process or read a clock; the simulation runs this code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sluice_checkpoints.errors import SluiceError
from sluice_checkpoints.names import counted, plural
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.protocol.open_range import RangeKept, shorten
from sluice_checkpoints.protocol.poison_note import noted
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.poison.exclusions import ExclusionPorts, Exclusions
from sluice_consumer.poison.search import DAY, HANG, BatchFailure, Content, Exclude, Retry, Search, Shorten, restored, stored
from sluice_consumer.shards.ranges import BoundRange, Fetched

POLL_SECONDS = 0.5


class BatchOverdue(SluiceError):
    """A batch did not end in time (`batch.maxSeconds`). It comes again, with the same content."""

    def __init__(self, message: str = "a batch did not end in time (batch.maxSeconds); it comes again, with the same content") -> None:
        super().__init__(message)


class BatchInterrupt(BaseException):
    """Raised in the thread of a `process` that does not end, in a process that is somebody else's: no `except Exception` of a retry swallows it."""


@dataclass(frozen=True)
class SettlePatience:
    """For how many seconds tasks of a batch that failed are waited for.

    Attributes:
        cancel: after this, jobs that read the batch are cancelled.
        limit: after this, the epoch ends.
    """

    cancel: float = 20.0
    limit: float = 3600.0


@dataclass(frozen=True)
class IsolationPorts:
    """What the driver brings.

    Attributes:
        excluding: what excluding a record needs.
        judge: what an exception of `process` is; None: it is none of its own, and ends the epoch.
        quiet: whether no task of this epoch can be working.
        cancel: cancels jobs that read the batch and still run; `quiet` knows of it. patience: when.
        wait: sleeps so many seconds; True: the driver is to drain.
        clock: monotonic seconds, those of failures.
        state: why a batch came again, each time that it does; None: it passed.
        excluded: which record was excluded.
    """

    excluding: ExclusionPorts
    judge: Callable[[Exception], BatchFailure | None]
    quiet: Callable[[], bool]
    wait: Callable[[float], bool]
    clock: Callable[[], float]
    cancel: Callable[[], None] = lambda: None
    patience: SettlePatience = field(default_factory=SettlePatience)
    state: Callable[[str | None], None] = lambda _line: None
    excluded: Callable[[str], None] = lambda _line: None


class Isolator:
    """Deals with batches that fail, in one epoch. Implements `loop.FailedBatches`."""

    def __init__(self, consumer: Consumer, ports: IsolationPorts, search: Search) -> None:
        """`search`: as it begins, with nothing known. Reads what the driver before has noted of the batch that is open now."""
        note = noted(consumer.store)
        self._consumer, self._ports, self.search = consumer, ports, search
        self._exclusions = Exclusions(consumer, ports.excluding, note)
        self._uncounted: str | None = None
        if note.batch == consumer.view.committed + 1:
            self.search, self._uncounted = restored(search, note.search, ports.clock()), note.failed

    @property
    def excluded(self) -> int:
        """How many records this consumer ever excluded."""
        return self._exclusions.note.ever

    @property
    def searching(self) -> bool:
        """Whether the next batch is one that the search wants."""
        return self.search.wanted() is not None

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
        coming = any(row.iterator is not None for row in committed.rows)
        self.search = self.search.passed(_content(committed.rows), coming=coming)
        if failing and not self.search.active:
            self._ports.state(None)

    def failed(self, plan: BatchPlan, error: Exception) -> None:
        """Makes what follows ready: the same batch again, or less of it, or its only record in the dead letters.

        Returns at once when the driver is to drain: then nothing is made ready, and the batch stays open.

        Raises:
            `error`: it ends the epoch; so it does where no task had bound a record. BatchOverdue: tasks of the batch do not end. Fenced,
            ProtocolViolation, or what reading the stream or writing a dead letter raises.
        """
        failure = self._ports.judge(error)
        if failure is None:
            raise error
        if not self._wait_for_tasks(plan, failure, error):
            return
        rows = self._consumer.close_failed(plan)
        if not _content(rows):
            raise error
        self._take(plan, rows, failure)

    def _wait_for_tasks(self, plan: BatchPlan, failure: BatchFailure, error: Exception) -> bool:
        """Waits until no task of the batch can be working. False: the driver has been asked to drain."""
        ports, began = self._ports, self._ports.clock()
        if not ports.quiet():
            ports.state(f"batch {plan.number} failed ({failure.error}); it comes again when no task of it can be working")
        while not ports.quiet():
            waited = ports.clock() - began
            if waited >= ports.patience.limit:
                raise self._still_working(plan, failure, waited) from error
            if waited >= ports.patience.cancel:
                ports.cancel()
            if ports.wait(POLL_SECONDS):
                return False
        return True

    def _still_working(self, plan: BatchPlan, failure: BatchFailure, waited: float) -> BatchOverdue:
        """Notes the failure for the next driver, which continues the search."""
        if not failure.transient:
            self.overdue(plan.number, failure.error, failure.trace)
        return BatchOverdue(
            f"batch {plan.number} failed ({failure.error}), and {waited:.0f} s later (batch.maxSeconds) a Spark job that reads it still runs, "
            "though it was cancelled; the batch comes again in the next driver"
        )

    def resumes(self, plan: BatchPlan) -> bool:
        """Counts the failure that the driver before has noted of this batch, and makes what follows ready. False: there was none.

        It is counted once: the note is written again without it, before anything follows from it.

        Raises:
            See `failed`.
        """
        error, self._uncounted = self._uncounted, None
        if error is None:
            return False
        rows = self._consumer.close_failed(plan) if plan.replay else ()
        if not _content(rows):
            self._note(plan.number)
            return False
        failure = BatchFailure(error, transient=False, at=self._ports.clock(), trace=self._exclusions.note.trace or error, kind=HANG)
        self._take(plan, rows, failure, noted=True)
        return True

    def overdue(self, number: int, error: str, trace: str) -> None:
        """Notes for the next driver that `process` did not end in a batch; this one is about to end.

        Raises:
            Fenced: a later epoch took over. ServiceUnavailable: nothing was noted.
        """
        self._note(number, failed=error, trace=trace)

    def _take(self, plan: BatchPlan, rows: Sequence[ShardRow], failure: BatchFailure, *, noted: bool = False) -> bool:
        """The next step of the search, and whether the driver is to drain instead of waiting."""
        content, before = _content(rows), self.search
        self.search, step = before.failed(content, failure, self._others(content))
        if noted:
            self._note(plan.number)
        if isinstance(step, Exclude):
            self._exclude(next(row for row in rows if row.records), before.evidence.failures + 1, failure.trace)
            return False
        lasts = "; for a day nothing of it has passed, or was left out" if self.search.waited(failure.at) >= DAY else ""
        self._ports.state(_message(plan, content, step, failure) + lasts)
        if isinstance(step, Shorten):
            kept = ((row, step.keep.get(row.id, 0)) for row in rows)
            self._consumer.know(*(self._shortened(row, keep) for row, keep in kept if keep < row.records))
        return bool(step.seconds) and self._ports.wait(step.seconds)

    def _note(self, number: int, failed: str | None = None, trace: str | None = None) -> None:
        known = stored(self.search, self._ports.clock())
        self._exclusions.write(replace(self._exclusions.note, batch=number, search=known, failed=failed, trace=trace))

    def _others(self, content: Content) -> list[str]:
        view = self._consumer.view
        return [row.id for row in view.live.values() if row.end != END and row.joins <= view.number and row.id not in content]

    def _exclude(self, row: ShardRow, attempts: int, trace: str) -> None:
        record = self._exclusions.exclude(row, attempts, trace)
        self._ports.state(None)
        self._ports.excluded(f"{row.id}: record {record} failed {counted(attempts, 'time')}; it is in the dead letters, and not in batch {row.batch}")

    def _shortened(self, row: ShardRow, keep: int) -> ShardRow:
        kept = first_records(self._ports.excluding.source.replay(BoundRange.of(row)), row, keep)
        return shorten(self._consumer.store, self._consumer.epoch, row, kept)


def first_records(fetched: Fetched, row: ShardRow, keep: int) -> RangeKept:
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


def _message(plan: BatchPlan, content: Content, step: Retry | Shorten, failure: BatchFailure) -> str:
    count, shards = sum(content.values()), len(content)
    kept = sum(step.keep.values()) if isinstance(step, Shorten) else count
    what = f"the same {count}" if kept == count else f"{kept} of its {count}" if kept else f"others before its {count}"
    why = f"something is unavailable: {failure.error}" if failure.transient else failure.error
    when = f"in {step.seconds:g} s" if step.seconds else "at once"
    comes = "comes" if kept == 1 else "come"
    return f"batch {plan.number} failed ({why}); {what} {plural(count, 'record')} of {counted(shards, 'shard')} {comes} again {when}"
