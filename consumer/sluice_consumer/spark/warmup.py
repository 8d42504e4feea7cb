"""Warms up a new executor before it gets shards, so that no batch waits for its first task (docs/architecture.md, "Scaling").

The first task in an executor takes seconds: classes, code that is not compiled yet, a Python worker with its imports. Spark gives free cores to the
job that was submitted first. So executors that never ran a task get a job of as many tasks as there are free cores, before a batch and while a lease
is waited for. The batch's tasks go to those that have done it already. Where there are none, the batch itself is what warms.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from sluice_consumer.spark.data_source import register
from sluice_consumer.spark.executors import registered
from sluice_consumer.spark.status import each, stages
from sluice_consumer.spark.warmup_source import TASKS, WarmUpSource

log = logging.getLogger(__name__)
LOOK_SECONDS = 0.5
SUBMITTED_SECONDS = 0.01
STOP_SECONDS = 10.0


class WarmUpBackend(Protocol):
    """What Spark can do."""

    def live(self) -> frozenset[str]:
        """Ids of the registered executors; whether they take tasks already is not known."""
        ...

    def slots(self) -> Mapping[str, int]:
        """How many tasks each of them runs at a time."""
        ...

    def rehearse(self) -> None:
        """Plans a read, and runs no job: the driver's own Python workers have begun then, and its classes are loaded."""
        ...

    def start(self, tasks: int) -> Future[frozenset[str]]:
        """Begins a job of so many tasks, which are ahead of any later job's when it returns. The result: who ran them."""
        ...


@dataclass
class WarmUp:
    """What is known of the executors: which have run a task, and which may be at their first."""

    backend: WarmUpBackend
    _warm: dict[str, int] = field(default_factory=dict)
    _jobs: dict[Future[frozenset[str]], frozenset[str]] = field(default_factory=dict)
    _over: bool = False
    _rehearsed: bool = False

    def before_batch(self) -> None:
        """Warms up new executors, but only while some warm executor can run the batch."""
        self._safely(self._before_batch)

    def while_waiting(self) -> None:
        """Warms up new executors: no batch can run now."""
        self._safely(lambda: self._warm_up(self._new()))

    @contextlib.contextmanager
    def meanwhile(self) -> Iterator[None]:
        """`while_waiting`, again and again in a thread. A wait that is not over at once has a rehearsal, too; nothing waits for its end."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(LOOK_SECONDS):
                self._rehearse()
                self.while_waiting()

        thread = threading.Thread(target=watch, name="warm-up", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(STOP_SECONDS)
            if thread.is_alive():  # Spark does not answer; whatever waits for it next says so
                log.warning("the warm-up of executors did not stop within %g s; new executors are not warmed up any more", STOP_SECONDS)
                self._over = True

    @property
    def slots(self) -> int:
        """How many tasks run at a time in executors that are warm; 0 if that is not known (any more)."""
        return sum(self._warm.values())

    def _rehearse(self) -> None:
        """In a thread of its own, once: where it takes long, or fails, the first batch plans as it would without one."""
        if not self._rehearsed:
            self._rehearsed = True
            threading.Thread(target=self._rehearsal, name="rehearsal", daemon=True).start()

    def _rehearsal(self) -> None:
        try:
            self.backend.rehearse()
        except Exception:
            log.debug("no read was planned ahead", exc_info=True)

    def _safely(self, step: Callable[[], None]) -> None:
        if self._over:
            return
        try:
            step()
        except Exception:  # batches do without
            log.exception("new executors are not warmed up any more; batches go to them as they are")
            self._over = True
            self._warm = {}

    def _before_batch(self) -> None:
        new = self._new()
        if self._warm or self._jobs:
            self._warm_up(new)
        elif new:
            self._know(new)

    def _new(self) -> frozenset[str]:
        self._take_in([job for job in self._jobs if job.done()])
        live = self.backend.live()
        self._warm = {executor: slots for executor, slots in self._warm.items() if executor in live}
        return live.difference(self._warm, *self._jobs.values())

    def _warm_up(self, new: frozenset[str]) -> None:
        if not new:
            return
        slots = self.backend.slots()
        tasks = sum(slots.get(executor, 0) for executor in new | self._warm.keys())
        if tasks:
            log.info("executors %s are new: %d tasks to warm up", sorted(new), tasks)
            self._jobs[self.backend.start(tasks)] = new

    def _take_in(self, done: list[Future[frozenset[str]]]) -> None:
        """One that has registered and takes no tasks yet gets none, and is still new."""
        for job in done:
            new = self._jobs.pop(job)
            error = job.exception()
            if error is not None:
                log.warning("executors %s could not be warmed up, batches go to them as they are: %s", sorted(new), error)
            ran = new if error else job.result()
            self._know(ran)

    def _know(self, warm: frozenset[str]) -> None:
        slots = self.backend.slots()
        self._warm |= {executor: slots[executor] for executor in warm if executor in slots}
        log.info("executors %s are warm", sorted(self._warm))


class SparkWarmUps:
    """Over py4j, for masters with executors of their own."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        """`options` of `WarmUpSource`, but for the number of tasks."""
        self._spark, self._options = spark, options
        self._scala: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark shows none of this
        self._threads = ThreadPoolExecutor(thread_name_prefix="warm-up")
        self._groups = (f"sluice-warm-up-{number}" for number in itertools.count())
        register(spark, WarmUpSource)

    def live(self) -> frozenset[str]:
        return frozenset(registered(self._scala))

    def slots(self) -> Mapping[str, int]:
        """See `WarmUpBackend`. Spark shows it a moment after an executor has registered."""
        listed = each(self._scala.statusStore().executorList(True))  # noqa: FBT003 - py4j
        return {str(executor.id()): int(executor.maxTasks()) for executor in listed if executor.id() != "driver"}

    def start(self, tasks: int) -> Future[frozenset[str]]:
        group = next(self._groups)
        job = self._threads.submit(self._run, group, tasks)
        until = time.monotonic() + STOP_SECONDS
        while not job.done() and not self._jobs(group) and time.monotonic() < until:
            wait([job], SUBMITTED_SECONDS)
        return job

    def _jobs(self, group: str) -> list[int]:
        return list(self._spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    def rehearse(self) -> None:
        self._read(1)._jdf.queryExecution().toRdd()  # noqa: SLF001 - PySpark has no name for it

    def _read(self, tasks: int) -> DataFrame:
        return self._spark.read.format(WarmUpSource.name()).options(**self._options).option(TASKS, tasks).load()

    def _run(self, group: str, tasks: int) -> frozenset[str]:
        self._spark.sparkContext.setJobGroup(group, "warm-up of executors")
        self._read(tasks).write.format("noop").mode("append").save()
        self._scala.listenerBus().waitUntilEmpty()
        store = self._scala.statusStore()
        return frozenset(str(task.executorId()) for stage in stages(store, self._jobs(group)) for task in each(store.taskList(stage, 0, tasks)))


def warm_up_here(spark: SparkSession, options: Mapping[str, str]) -> None:
    """Runs one job of no meaning in a session whose tasks run in the driver: its classes are loaded, and its Python workers have begun.

    Args:
        spark: the session.
        options: see `SparkWarmUps`.
    """
    try:
        SparkWarmUps(spark, options).start(spark.sparkContext.defaultParallelism).result()
    except Exception:  # the first batch does without
        log.warning("Spark could not be warmed up; the first batch takes longer", exc_info=True)
