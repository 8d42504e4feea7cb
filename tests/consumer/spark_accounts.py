"""Spark's own account of its jobs, late and with gaps as a test wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from py4j.protocol import Py4JError

from sluice_consumer.spark.jobs import Clock, Jobs
from sluice_consumer.spark.status import FAILED, FORGOTTEN, Execution, Facts

LEASE = 20.0
QUERY = Execution(3, "save at pipeline.py:9", ended=2000, clean=True, nested=False)
READ = Facts("collect at pipeline.py:7", reads=True, execution=None, why="ValueError: no")


@dataclass
class Spark:
    """A status store as it looks from outside, in virtual time. `later`: what becomes so at a moment."""

    jobs: dict[int, str] = field(default_factory=dict)
    tagged: dict[int, str] = field(default_factory=dict)
    about: dict[int, Facts] = field(default_factory=dict)
    working: set[int] = field(default_factory=set)
    busy: bool = False
    lost_events: int = 0
    alive: set[str] = field(default_factory=lambda: {"driver"})
    dead: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    repeated: bool = False
    cancelled: list[int] = field(default_factory=list)
    later: dict[float, Callable[[], object]] = field(default_factory=dict)
    time: float = 0.0

    def clock(self) -> Clock:
        return Clock(lambda: self.time, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        for at in [at for at in self.later if at <= self.time]:
            self.later.pop(at)()
        assert self.time < 1000, "it waits for ever"

    def begun(self) -> int:
        return len(self.jobs)

    def status(self, job: int) -> str:
        return self.jobs[job]

    def tags(self, job: int) -> frozenset[str] | None:
        return None if self.jobs[job] == FORGOTTEN else frozenset({self.tagged[job]} if job in self.tagged else ())

    def moved(self, of: Iterable[int] | None = None) -> tuple[int, ...]:
        return tuple(self.jobs if of is None else of)

    def active(self, job: int) -> bool:
        return job in self.working

    def facts(self, job: int) -> Facts:
        assert self.jobs[job] != FORGOTTEN
        return self.about.get(job, READ)

    def cancel(self, job: int) -> None:
        """See `Status`. An event says so a moment later."""
        self.cancelled.append(job)
        self.later[self.time + 0.5] = lambda: self.jobs.update({job: FAILED})

    def disturbed(self, jobs: Iterable[int]) -> bool:
        if self.silent:
            raise Py4JError("forgotten")
        return self.repeated and any(True for _ in jobs)

    def drained(self, seconds: float) -> bool:
        if self.busy:
            self.sleep(seconds)
        return not self.busy

    def dropped(self) -> int:
        return self.lost_events

    def executors(self) -> tuple[frozenset[str], int]:
        return frozenset(self.alive), len(self.alive) + len(self.dead)

    def gone(self) -> dict[str, str]:
        return dict(self.dead)


def judged(spark: Spark, tag: str = "") -> Jobs:
    jobs = Jobs(spark, spark.clock(), tag)
    jobs.issue()
    return jobs
