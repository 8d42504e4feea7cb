"""Spark, replaced by a scheduler of steps: jobs, tasks, attempts, and user code of every kind that protocol.md allows.

Each attempt of a task is a process that runs the real `shards.bind.read_shard`. What a driver believes and what its executors do may differ: a lost
executor's attempt goes on as a zombie while the next attempt starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from simulation.habits import EARLY, HANG, LATE, NOTHING, PART, RAISE, READ, SWALLOW, TWICE, WAIVE, Habits
from simulation.ledger import Batch, Emission, Ledger
from simulation.outages import Outage
from simulation.ports import Client, Source
from simulation.turnstile import Process, Waiting

from sluice_checkpoints.errors import SluiceError
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.planner import BatchPlan, deal
from sluice_consumer.pipelines import NotNow
from sluice_consumer.shards import bind
from sluice_consumer.shards.ranges import Limits
from sluice_lab.fakes.table import MemoryTable

HANGS = 15.0  # seconds until a driver ends whose batch does not


class JobFailed(Exception):
    """A Spark job failed: a task of it failed too often."""


class JobsNotDone(Exception):
    """`process` returned although a job had failed."""


class ProcessRaised(Exception):
    """`process` raised an error of its own."""


class RaisedLate(ProcessRaised):
    """`process` raised when its sink had the batch."""


class BatchOverdue(Exception):
    """`process` did not end in time: the driver ended."""


class Cluster(Protocol):
    """What an engine needs of the world. `calm`: faults have ended, those of the user's code too.

    `raised_late`: batches after which `process` has raised though its sink had them.
    """

    habits: Habits
    calm: bool
    ledger: Ledger
    table: MemoryTable
    outage: Outage | None
    attempt_numbers: count[int]
    raised_late: set[tuple[str, int]]

    def source(self, identity: StreamIdentity) -> bind.ShardSource: ...

    def now(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Clock:
    """The monotonic clock of one machine: it begins anywhere, and goes a little wrong."""

    now: Callable[[], float]
    rate: float = 1.0
    offset: float = 0.0

    def __call__(self) -> float:
        return self.offset + self.now() * self.rate

    def true(self, local: float) -> float:
        """The virtual time at which this clock shows `local`."""
        return (local - self.offset) / self.rate

    def after(self, seconds: float) -> float:
        """The virtual time that is so many local seconds from now."""
        return self.now() + seconds / self.rate


@dataclass
class Attempt:
    """One attempt of a task. `deadline`: when its executor exits by itself, cut off from the driver. `lost`: the driver gave it up."""

    job: Job
    partition: int
    process: Process
    clock: Clock
    deadline: float | None = None
    lost: bool = False
    paused: bool = False
    rows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    held: Callable[[], bool] = lambda: False


@dataclass
class Job:
    """A Spark job that reads some groups of shards, one a task."""

    stage: int
    groups: tuple[tuple[str, ...], ...]
    tries: dict[int, int] = field(default_factory=dict)
    results: dict[int, Batch] = field(default_factory=dict)
    failed: str | None = None
    hangs: bool = False

    @property
    def over(self) -> bool:
        """Whether the driver knows how it ended."""
        return self.failed is not None or len(self.results) == len(self.groups)


class Engine:
    def __init__(self, cluster: Cluster, consumer: Consumer, lease: float, host: tuple[Process, Clock]) -> None:
        assert consumer.row is not None
        assert consumer.identity is not None
        self._cluster, self._epoch, self._consumer_id, self._lease = cluster, consumer.epoch, consumer.row.consumer_id, lease
        self._consumer = consumer
        self._driver, self._clock = host
        self._stages = count()
        self.attempts: list[Attempt] = []
        self.jobs: list[Job] = []
        self.plan: BatchPlan | None = None
        self.troubled_at = float("-inf")
        self._trouble = False
        self.overdue: Callable[[int], None] = lambda _number: None  # of the epoch's driver; raises
        self.late = False  # the driver stood still for long: nobody claims that what it issues now is silent

    @property
    def _stream(self) -> StreamIdentity:
        assert self._consumer.identity is not None
        return self._consumer.identity

    # -- the driver's side ---------------------------------------------------------------------------------------------------------

    def run(self, plan: BatchPlan) -> None:
        if plan.is_empty_replay:
            return
        self.plan, self.jobs = plan, []
        try:
            self._process(plan)
            self.check()
        finally:
            if self._trouble:
                self.troubled_at, self._trouble = self._clock(), False

    def check(self) -> None:
        """Waits for jobs that still run, and refuses a batch of which one failed (`jobs.Jobs.check`)."""
        for job in self.jobs:
            self._wait_for(job)
            if job.failed and not (self._cluster.habits.only_close and self._unread(job)):
                raise JobsNotDone(job.failed)

    def _kind(self, plan: BatchPlan) -> str:
        """What `process` does with this issue of the batch; what keeps it from reading ends with the other faults."""
        habits = self._cluster.habits.processes
        if self._cluster.habits.isolates:  # there `process` raises because of a record, or in an outage: not by the number of its batch
            habits = tuple(READ if kind == RAISE else kind for kind in habits)
        kind = habits[(plan.number + self._epoch.generation - 1) % len(habits)]
        return READ if self._cluster.calm and kind in {NOTHING, PART, RAISE, HANG, LATE} else kind

    def _process(self, plan: BatchPlan) -> None:
        sink, pair, kind = self._cluster.ledger.sink, (self._consumer_id, plan.number), self._kind(plan)
        if self._cluster.habits.looks_first and sink.has(pair):
            return
        if kind == HANG:
            self._driver.pause("hang", Waiting(ready=lambda: False))
        if kind == NOTHING or (kind == WAIVE and plan.replay):
            self._returns_unread(plan, kind)
            return
        wanted = self._wanted(plan, kind)
        rows = self._read(kind, self._groups(wanted))
        if rows is None:
            return
        if any(row.records for row in plan.rows if plan.replay and row not in wanted):
            raise NotNow(f"batch {plan.number}: the rest later")
        if kind == RAISE and plan.number % 2:
            raise ProcessRaised
        if self._meets(rows):
            self._fails(plan, wanted)
        self._driver.pause("sink")
        self._cluster.ledger.keep(pair, rows)
        self._kept(pair, kind, rows)

    def _kept(self, pair: tuple[str, int], kind: str, rows: Batch) -> None:
        if kind == RAISE:
            raise ProcessRaised
        if kind == LATE and pair not in self._cluster.raised_late and any(rows.values()):
            self._cluster.raised_late.add(pair)
            raise RaisedLate

    def _meets(self, rows: Batch) -> bool:
        outage = self._cluster.outage
        if outage is not None and outage.meets(rows, self._cluster.now()):
            return True
        return bool(self._cluster.ledger.poison & {name for names in rows.values() for name in names})

    def _fails(self, plan: BatchPlan, wanted: list[ShardRow]) -> None:
        """On poison, or in an outage: by the same error, for nothing else tells them apart."""
        if self._cluster.habits.overdue:
            self._driver.pause("stuck", Waiting(wake=self._clock.after(HANGS)))
            self.overdue(plan.number)
        if self._cluster.habits.straggles and not self._cluster.calm:
            self._submitted(self._groups(wanted)).hangs = True
        raise ProcessRaised

    def _returns_unread(self, plan: BatchPlan, kind: str) -> None:
        """Without reading: a first issue then contains nothing. Of a replay it has to say whether it is dealt with."""
        if kind == WAIVE:
            self._cluster.ledger.waived.add((self._consumer_id, plan.number))
        elif plan.replay:
            raise NotNow(f"batch {plan.number}: later")

    def _wanted(self, plan: BatchPlan, kind: str) -> list[ShardRow]:
        """What it reads. Something, for a write tells an epoch that stood still that another works (protocol.md, "What returning means")."""
        chosen = [row for row in plan.rows if kind != PART or self._chosen(plan, row)]
        return chosen or list(plan.rows)

    def _chosen(self, plan: BatchPlan, row: ShardRow) -> bool:
        return bool((number_of(row.id) + plan.number // len(self._cluster.habits.processes)) % 2)

    def _groups(self, rows: list[ShardRow]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(row.id for row in group) for group in deal(rows, 1, self._cluster.habits.shards_per_task)) if rows else ()

    def _read(self, kind: str, groups: tuple[tuple[str, ...], ...]) -> dict[str, tuple[str, ...]] | None:
        """What a query of this kind brings; None: the user's code gives up."""
        assert self.plan is not None
        if kind == SWALLOW:
            rows: dict[str, tuple[str, ...]] = {}
            for group in groups:
                rows |= self._swallowing(group)
            return None if any(job.failed for job in self.jobs) and not self._cluster.habits.only_close else rows
        if kind == EARLY:
            return self._ending_early(groups)
        rows = self._job(groups)
        if kind == TWICE and (again := self._job(groups)) != rows:
            self._cluster.ledger.breaks("batch_content_is_fixed", f"batch {self.plan.number} was {rows}, and read again {again}")
        return rows

    def _ending_early(self, groups: tuple[tuple[str, ...], ...]) -> dict[str, tuple[str, ...]]:
        """A query that needs no more than some tasks brought by now: the others go on, and their rows are dealt with unseen."""
        assert self.plan is not None
        job = self._submitted(groups)
        self._driver.pause("query")
        self._cluster.ledger.waived.add((self._consumer_id, self.plan.number))
        return {shard: records for result in job.results.values() for shard, records in result.items()}

    def _swallowing(self, group: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Reads a group and goes on without it when that fails; with rows bound by then, not even this process dares to."""
        try:
            return self._job((group,))
        except JobFailed:
            if not self._cluster.habits.only_close:
                return {}
            if not self._unread(self.jobs[-1]) or self.plan is None:
                raise
            for attempt in self.attempts:  # the claim is about what comes after the close
                attempt.held = lambda number=self.plan.number: self._cluster.ledger.committed < number and not self._driver.at.startswith("commit")
            return {}

    def _unread(self, job: Job) -> bool:
        assert self.plan is not None
        rows = (self._cluster.table.rows[f"shard/{shard}"] for group in job.groups for shard in group)
        return all(row["batch"] < self.plan.number for row in rows)

    def _job(self, groups: tuple[tuple[str, ...], ...]) -> dict[str, tuple[str, ...]]:
        job = self._submitted(groups)
        self._wait_for(job)
        if job.failed is not None:
            raise JobFailed(job.failed)
        return {shard: records for result in job.results.values() for shard, records in result.items()}

    def _submitted(self, groups: tuple[tuple[str, ...], ...]) -> Job:
        job = Job(next(self._stages), groups)
        self.jobs.append(job)
        for partition in range(len(groups)):
            self._launch(job, partition)
        return job

    def _wait_for(self, job: Job) -> None:
        while not job.over:
            self._driver.pause("job", Waiting(ready=lambda: job.over))

    def cancel(self) -> None:
        """Jobs that still run are cancelled (`jobs.Jobs.cancel`). Their tasks end within a third of a lease, and may hand something over before."""
        for job in [job for job in self.jobs if not job.over]:
            job.failed, self.troubled_at = "cancelled", self._clock()
            for attempt in self.attempts:
                if attempt.job is job:
                    attempt.lost, attempt.deadline = True, attempt.deadline or attempt.clock.after(self._lease / 3)

    def quiet(self) -> bool:
        """Whether nobody of this epoch can still be working (`spark.jobs.Jobs.quiet`)."""
        if self._trouble or not all(job.over for job in self.jobs):
            self.troubled_at, self._trouble = self._clock(), False
        return self._clock() - self.troubled_at > self._lease

    # -- the executors' side -------------------------------------------------------------------------------------------------------

    def _launch(self, job: Job, partition: int) -> None:
        job.tries[partition] = job.tries.get(partition, 0) + 1
        number = next(self._cluster.attempt_numbers)
        reader = TaskAttempt(f"{self._epoch.generation}.{job.stage}.{partition}", number)
        name = f"task {reader.key} attempt {number}"
        rates = self._cluster.habits.rates
        clock = Clock(self._cluster.now, rates[number % len(rates)])
        assert self.plan is not None
        told = self.plan.number, min(self.plan.limit or 2**20, self._cluster.habits.limit)  # with the task, whenever that starts
        attempt = Attempt(job, partition, Process(name, lambda process: self._task(process, attempt, told, reader)), clock, paused=self.late)
        self.attempts.append(attempt)

    def _task(self, process: Process, attempt: Attempt, told: tuple[int, int], reader: TaskAttempt) -> None:
        """What `batch_reader.BatchReader.read` does, with its threads in a row."""
        store, source = (
            CheckpointStore(Client(process, self._cluster.table, self._cluster.now)),
            Source(process, self._cluster.source(self._stream), self._cluster.ledger.suspects),
        )
        task = bind.Task(
            epoch=Epoch(self._epoch.generation, ""),
            batch=told[0],
            reader=reader,
            limits=Limits(told[1], 2**20),
            lease_seconds=self._lease,
            wait=lambda seconds: self._sleep(process, attempt.clock.after(seconds)),
        )
        rows = store.read(attempt.job.groups[attempt.partition]).values()
        ready = ((row.id, bind.read_shard(store, source, task, row)) for row in rows)
        for shard, fetched in list(ready) if self._cluster.habits.bind_all_first else ready:
            if attempt.job.hangs:
                process.pause("straggle", Waiting(ready=lambda: attempt.lost))
            process.pause(f"emit {shard}")
            records = tuple(data.decode(errors="replace") for data in fetched.columns.data)
            self._cluster.ledger.emit(Emission(self._epoch.generation, task.batch, shard, reader.key, reader.attempt, records, attempt.paused))
            attempt.rows[shard] = records

    def _sleep(self, process: Process, until: float) -> None:
        process.pause("wait", Waiting(wake=until))

    def ended(self, attempt: Attempt) -> None:
        """An attempt is over: the driver hears of it, unless it had given it up."""
        self.attempts.remove(attempt)
        error = attempt.process.error
        if error is not None and not attempt.process.killed and not isinstance(error, SluiceError):
            raise error
        if attempt.lost:
            return
        if error is None:
            attempt.job.results[attempt.partition] = dict(attempt.rows)
            self._kill_others(attempt)
        else:
            self.again(attempt, f"{type(error).__name__}: {error}")

    def _kill_others(self, winner: Attempt) -> None:
        """Spark kills another attempt of a task that has succeeded; its worker may take a moment."""
        for other in self.attempts:
            if other.job is winner.job and other.partition == winner.partition and not other.lost:
                other.lost, other.deadline, self._trouble = True, other.clock.after(self._lease / 3), True

    def lose(self, attempt: Attempt) -> None:
        """The driver gives an attempt up; its executor lives on until it notices."""
        if not attempt.lost:
            attempt.lost, attempt.deadline = True, attempt.clock.after(self._lease / 3)
            self.again(attempt, "executor lost")

    def again(self, attempt: Attempt, why: str) -> None:
        """A task failed: its next attempt, or the end of its job."""
        self._trouble, job = True, attempt.job
        if job.over or self._driver.done:
            return
        if job.tries[attempt.partition] < self._cluster.habits.attempts:
            self._launch(job, attempt.partition)
            return
        job.failed = why
        for other in self.attempts:
            if other.job is job:
                other.lost, other.deadline = True, other.deadline or other.clock.after(self._lease / 3)

    def orphan(self) -> None:
        """The driver is gone: executors exit within a third of the lease."""
        for attempt in self.attempts:
            attempt.lost, attempt.deadline = True, attempt.deadline or attempt.clock.after(self._lease / 3)


def number_of(shard: str) -> int:
    return int(shard.removeprefix("shardId-"))
