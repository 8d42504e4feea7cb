"""What became of the Spark jobs of a batch (docs/protocol.md, "A batch" and "An epoch").

An epoch has one batch open at a time. So every job that began since the batch was issued belongs to it, whatever its job group, unless it carries
the tag of another consumer in the same Spark (`job_tags`). Three rules:

* A job that reads the batch is over before the batch is closed. Spark's adaptive execution ends a query as soon as its result is known to be empty.
  The jobs of the query's other stages run on, and still bind shards: they are waited for. A job that does not read the batch is left alone.
* A job that failed or was cancelled refuses the batch. The exception: its SQL query returned a result, so the job was not needed.
* What Spark has forgotten counts as failed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from py4j.protocol import Py4JError

from sluice_checkpoints.errors import SluiceError
from sluice_consumer import logs
from sluice_consumer.spark.job_tags import is_anothers
from sluice_consumer.spark.status import FAILED, FORGOTTEN, RUNNING, SUCCEEDED, Facts

log = logging.getLogger(__name__)
POLL_SECONDS = 0.1
DRAIN_SECONDS = 1.0  # for Spark's own events, a step; a slow listener of the user's may hold them up for longer
VERDICT_SECONDS = 5.0  # a query says how it ended a moment after its last job
LISTENER_SECONDS = 60.0  # a listener that hangs delays a refusal no longer than this
SAY_SECONDS = 10.0
LOST_EVENTS = "Spark dropped events of this batch; raise spark.scheduler.listenerbus.eventqueue.appStatus.capacity"
FORGOT = "Spark has forgotten it; the function runs more jobs than spark.ui.retainedJobs"


class JobsNotDone(SluiceError):
    """A job of the batch failed or was cancelled though the function returned, or it is not known: the batch may not be committed."""


class JobStatus(Protocol):
    """What Spark knows (`status.SparkStatus`)."""

    def begun(self) -> int:
        """How many jobs ever began."""
        ...

    def status(self, job: int) -> str:
        """RUNNING, SUCCEEDED, FAILED or FORGOTTEN."""
        ...

    def tags(self, job: int) -> frozenset[str] | None:
        """With which tags a job was begun; None: it is not known."""
        ...

    def moved(self, of: Iterable[int] | None = None) -> tuple[int, ...]:
        """Numbers that change when something of these jobs moves."""
        ...

    def active(self, job: int) -> bool:
        """Whether the scheduler works on it, whatever events say."""
        ...

    def facts(self, job: int) -> Facts:
        """All about a job that is not FORGOTTEN."""
        ...

    def cancel(self, job: int) -> None:
        """Ends a job. Its tasks are asked to end, and may take a while."""
        ...

    def disturbed(self, jobs: Iterable[int]) -> bool:
        """Whether a task failed or was killed, or a stage was repeated."""
        ...

    def drained(self, seconds: float) -> bool:
        """Waits until all events have arrived; whether they did."""
        ...

    def dropped(self) -> int:
        """How many events never will."""
        ...

    def executors(self) -> tuple[frozenset[str], int]:
        """Ids of those that are there, and how many there ever were."""
        ...

    def gone(self) -> dict[str, str]:
        """Why others left."""
        ...


@dataclass(frozen=True)
class Clock:
    """Time, and how to let it pass."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Doubt:
    """Why a batch may not be committed: for ever, or for now."""

    text: str
    final: bool


class Remembered(Protocol):
    """What is known of jobs that Spark may have forgotten (`job_memory.JobMemory`)."""

    def tags(self, job: int) -> frozenset[str] | None:
        """With which tags a job was begun; None: it is not known."""
        ...

    def succeeded(self, job: int) -> bool:
        """Whether it is known that a job ended well."""
        ...


class Jobs:
    """Watches one session.

    Attributes:
        memory: of all jobs of this Spark, where several consumers begin some; None: Spark alone is asked.
    """

    def __init__(self, status: JobStatus, clock: Clock | None = None, tag: str = "") -> None:
        """`tag`: of this epoch's jobs. A job with the tag of another one is none of its own."""
        self.memory: Remembered | None = None
        self._status, self._clock, self._tag = status, clock or Clock(), tag
        self._others, self._unknown = dict[int, bool](), dict[int, float]()
        self._next, self._dropped = status.begun(), status.dropped()
        self._there, self._ever = status.executors()
        self._gone = frozenset(status.gone())
        self._troubled_at = float("-inf")
        self._unsettled = False  # a job may have run on after the last look; without one it does not matter which executors leave
        self._cancelled = set[int]()

    def issue(self) -> None:
        """A batch begins: jobs from now on are its own."""
        self._next, self._dropped = self._status.begun(), self._status.dropped()
        self._others, self._unknown = {}, {}

    # -- the verdict ---------------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Returns when no job reads the batch any more and every result that the function got was whole.

        Raises:
            JobsNotDone: naming the jobs and their queries.
        """
        began, say = self._clock.now(), SAY_SECONDS
        drained, pause = False, 0.0  # mostly only an event is on its way
        while doubts := self._doubts(waited := self._clock.now() - began):
            bad = [doubt.text for doubt in doubts if doubt.final]
            if bad and (drained or waited > LISTENER_SECONDS):
                raise JobsNotDone(f"the function that got the batch returned, but {'; '.join(bad)}; let errors of a read out of the function")
            if waited > say:
                say *= 2
                logs.say(f"the function returned {waited:.0f} s ago; waiting for {'; '.join(doubt.text for doubt in doubts)}")
            self._clock.sleep(pause)
            drained, pause = self._status.drained(DRAIN_SECONDS), POLL_SECONDS

    def _doubts(self, waited: float) -> list[Doubt]:
        unfinished = ((job, status, waited) for job, status in self._statuses() if status != SUCCEEDED)
        return [doubt for each in unfinished if (doubt := self._doubt(*each))]

    def _doubt(self, job: int, status: str, waited: float) -> Doubt | None:
        if status == FORGOTTEN:
            return Doubt(f"job {job} is unknown: {LOST_EVENTS if self._deaf() else FORGOT}", final=self._stays_unknown(job))
        facts = self._status.facts(job)
        if status == FAILED:
            open_ = facts.execution is not None and facts.execution.ended is None and waited < VERDICT_SECONDS
            return None if self._needless(facts) else Doubt(_named(job, facts, FAILED), final=not open_)
        if not facts.reads:
            return None
        if self._end_was_dropped(job):
            return Doubt(f"{_named(job, facts, 'has no known end')}: {LOST_EVENTS}", final=True)
        return Doubt(f"{_named(job, facts, RUNNING)}, and reads the batch", final=False)

    def _statuses(self) -> Iterable[tuple[int, str]]:
        return ((job, self._state(job)) for job in self._numbers())

    def _state(self, job: int) -> str:
        """A job that has ended well stays so."""
        return SUCCEEDED if self.memory and self.memory.succeeded(job) else self._status.status(job)

    def _numbers(self) -> Iterable[int]:
        return (job for job in range(self._next, self._status.begun()) if not self._is_anothers(job))

    def _is_anothers(self, job: int) -> bool:
        """Whether another consumer began the job. One that is not known may be ours."""
        if self._tag and job not in self._others:
            tags = self.memory.tags(job) if self.memory else None
            tags = self._status.tags(job) if tags is None else tags
            if tags is None:
                return False
            self._others[job] = is_anothers(tags, self._tag)
        return self._others.get(job, False)

    def _is_known(self, job: int) -> bool:
        """Whether it is known, or does not matter, whose the job is."""
        return not self._tag or self._is_anothers(job) or job in self._others

    def _stays_unknown(self, job: int) -> bool:
        """Spark counts a job a moment before it says whose it is."""
        now = self._clock.now()
        return now - self._unknown.setdefault(job, now) >= VERDICT_SECONDS

    def moved(self) -> tuple[int, ...]:
        """Numbers that change when something of the batch moves. Spark is asked for each job's stages only where another consumer has jobs."""
        numbers = list(self._numbers())
        return self._status.moved(numbers if any(self._others.values()) else None)

    def _deaf(self) -> bool:
        return self._status.dropped() != self._dropped

    def _end_was_dropped(self, job: int) -> bool:
        """Of a job that runs as far as events say. Asked twice: the scheduler may be busy with its books."""
        return self._deaf() and not self._status.active(job) and not self._status.active(job)

    def _needless(self, facts: Facts) -> bool:
        """Whether the job's query returned its result without it, even before it began: adaptive execution submits stages in threads of their own."""
        query = facts.execution
        return query is not None and query.clean and query.ended is not None

    def busy(self) -> bool:
        """Whether a job that reads the batch still runs, though the function raised: another thread of it, or adaptive execution, had started it."""
        try:
            return bool(self._reading())
        except Py4JError:
            log.exception("Spark did not report whether a job of the batch runs")
            return True

    def cancel(self) -> None:
        """Cancels the jobs that read the batch and still run. Their tasks may work on for a while (`quiet`)."""
        for job in self._reading():
            if job not in self._cancelled:
                logs.say(f"cancelling {_named(job, self._status.facts(job), RUNNING)}, which reads a batch that failed")
            self._cancelled.add(job)
            self._status.cancel(job)
            self._troubled_at = self._clock.now()

    def _reading(self) -> list[int]:
        """A job whose end Spark dropped is none of them: the scheduler no longer works on it."""
        running = (job for job, status in self._statuses() if status == RUNNING and self._status.facts(job).reads)
        return [job for job in running if not self._end_was_dropped(job)]

    # -- quiet ---------------------------------------------------------------------------------------------------------------------

    def observe(self) -> None:
        """Notes whether a task of this epoch may still be working though Spark gave it up. Call it when a batch has ended, in any way."""
        self._unsettled = self.troubled()
        if self._unsettled:
            self._troubled_at = self._clock.now()

    def quiet(self, seconds: float) -> bool:
        """Whether no job has read the batch, and nothing was noted, for so long that no task of this epoch can still be working.

        A job that runs on after the batch has failed may lose an executor, and succeed by another attempt; the lost one works on for a while.
        """
        busy = self.busy()
        if busy or (self._unsettled and self._has_lost()):
            self._troubled_at = self._clock.now()
        self._unsettled = busy
        return self._clock.now() - self._troubled_at > seconds

    def _has_lost(self) -> bool:
        try:
            return self._lost()
        except Py4JError:
            log.exception("Spark did not report its executors")
            return True

    def troubled(self) -> bool:
        """Whether, since the batch was issued, a task failed or was killed, an executor was lost or a job has not succeeded; or that is not known.

        Such a task's worker may still be running for a while, and so may an executor that only the network has lost. Where no job ran there is none.
        """
        try:
            jobs = self._known_numbers()
            return self._lost() or self._unfinished(jobs) or self._deaf() or self._status.disturbed(jobs)
        except Py4JError:
            log.exception("Spark did not report what became of the batch's tasks")
            return True

    def _known_numbers(self) -> list[int]:
        """The jobs until now, once Spark says whose each is: beside other consumers there always is one that is counted and not known yet."""
        jobs, until = list(self._numbers()), self._clock.now() + DRAIN_SECONDS
        while self._clock.now() < until and not all(map(self._is_known, jobs)):
            self._clock.sleep(POLL_SECONDS)
        return [job for job in jobs if not self._is_anothers(job)]

    def _unfinished(self, jobs: list[int]) -> bool:
        return self._any_left(jobs) and not (self._status.drained(DRAIN_SECONDS) and not self._any_left(jobs))

    def _any_left(self, jobs: list[int]) -> bool:
        left = ((job, status) for job in jobs if (status := self._state(job)) != SUCCEEDED)
        return any(status != RUNNING or self._status.facts(job).reads for job, status in left)

    def _lost(self) -> bool:
        """Whether an executor left without having been decommissioned. Compared by id: Spark forgets old ones, so the number may stay the same."""
        there, ever = self._status.executors()
        before, self._there = self._there, there
        if before <= there and ever == self._ever + len(there - before):
            self._ever = ever
            return False
        gone, self._ever = self._status.gone(), ever
        left = (before - there) | (gone.keys() - self._gone)
        self._gone = frozenset(gone)
        return any("decommission" not in gone.get(executor, "").lower() for executor in left)


def _named(job: int, facts: Facts, what: str) -> str:
    query = f", query {facts.execution.number} ({' '.join(facts.execution.text.split())})" if facts.execution else ""
    return f"job {job} ({facts.name}{query}) {what}" + (f": {facts.why}" if facts.why else "")
