"""The number of executors, changed in place (docs/architecture.md, "Scaling").

Raising asks Spark for more; lowering decommissions the surplus, whose running tasks end first. Only when that takes longer than the drain timeout
are they killed, and the tasks' next attempts wait out the lease.
"""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluice_consumer.driver_report import ExecutorDrain
from sluice_consumer.spark import conf

log = logging.getLogger(__name__)


class ExecutorBackend(Protocol):
    """What Spark's scheduler can do."""

    def live(self) -> list[str]:
        """Ids of the registered executors."""
        ...

    def request(self, total: int) -> None:
        """Asks for this many in all."""
        ...

    def decommission(self, executor: str) -> None:
        """Lets one end its tasks and leave; the total stays."""
        ...

    def kill(self, executor: str) -> None:
        """Ends one now."""
        ...


@dataclass(frozen=True)
class Draining:
    """An executor on its way out; times in monotonic seconds."""

    executor: str
    since: float
    deadline: float


class ExecutorTarget:
    """Brings the executors to a target that may change at any time; the last one wins. Call `apply` every second or two."""

    def __init__(self, backend: ExecutorBackend, initial: int, drain_seconds: float, clock: Callable[[], float]) -> None:
        self._backend, self._drain_seconds, self._clock = backend, drain_seconds, clock
        self.total = initial
        self.live = 0
        self.draining: dict[str, Draining] = {}

    def apply(self, target: int) -> None:
        """One step towards the target. Further changes wait while executors drain."""
        live = self._backend.live()
        self.live = len(live)
        self.draining = {e: d for e, d in self.draining.items() if e in live}
        for overdue in [d for d in self.draining.values() if self._clock() >= d.deadline]:
            log.warning("executor %s did not finish within %.0f s: killed", overdue.executor, self._drain_seconds)
            self._backend.kill(overdue.executor)
        if self.draining or (target == self.total and len(live) <= target):
            return  # more live than wanted: some were starting when the target was lowered, and registered since
        if target > self.total:
            log.info("executors %d -> %d", self.total, target)
            self._backend.request(target)
        else:
            self._shrink(live, target)
        self.total = target

    def _shrink(self, live: list[str], target: int) -> None:
        surplus = sorted(live, key=int)[target:] if len(live) > target else []
        log.info("executors %d -> %d: decommissioning %s", self.total, target, surplus or "none, they have not started")
        self._backend.request(target)  # first: otherwise those that leave would be replaced
        now = self._clock()
        for executor in surplus:
            self._backend.decommission(executor)
            self.draining[executor] = Draining(executor, now, now + self._drain_seconds)


class OwnProcess:
    """In local mode the driver's own process runs the tasks: one executor, which can be neither asked for nor sent away."""

    def __init__(self) -> None:
        self.total = self.live = 1
        self.draining: dict[str, Draining] = {}

    def apply(self, target: int) -> None:
        """Nothing: the operator stops the driver where the target is 0."""


class SparkBackend:
    """Over py4j; the calls were tried on a real cluster (facts in docs/architecture.md)."""

    def __init__(self, context: SparkContext) -> None:
        self._scala: Any = context._jsc.sc()  # noqa: SLF001 - PySpark shows none of this
        self._jvm: Any = context._jvm  # noqa: SLF001

    def live(self) -> list[str]:
        """Ids of the registered executors."""
        return registered(self._scala)

    def request(self, total: int) -> None:
        """Asks for this many in all."""
        none = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
        self._scala.requestTotalExecutors(total, 0, none)

    def decommission(self, executor: str) -> None:
        """Lets one end its tasks and leave.

        The total is not left to Spark (`adjustTargetNumExecutors`): As long as nobody has asked for executors, Spark takes none for the total that it
        lowers. A lost executor would never be replaced. Source: `CoarseGrainedSchedulerBackend.adjustExecutors`.
        """
        info = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("scale down", self._jvm.scala.Option.empty())
        self._scala.schedulerBackend().decommissionExecutor(executor, info, False, False)  # noqa: FBT003 - py4j has no keyword arguments

    def kill(self, executor: str) -> None:
        """Ends one now; the target was lowered when it was decommissioned."""
        victims = self._jvm.java.util.ArrayList()
        victims.add(executor)
        ids = self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(victims).toSeq()
        self._scala.schedulerBackend().killExecutors(ids, False, False, True)  # noqa: FBT003


def registered(scala: Any) -> list[str]:
    """Ids of the executors that a (Scala) SparkContext knows, in two calls however many they are; whether they take tasks already is not known."""
    return str(scala.getExecutorIds().mkString(" ")).split()


def target_of(spark: SparkSession, initial: int, drain_seconds: float, clock: Callable[[], float]) -> ExecutorTarget | OwnProcess:
    """What keeps the executors of a session at their number."""
    if conf.is_local(str(spark.sparkContext.master)):
        return OwnProcess()
    return ExecutorTarget(SparkBackend(spark.sparkContext), initial, drain_seconds, clock)


def drains(target: ExecutorTarget | OwnProcess, prefix: str) -> tuple[ExecutorDrain, ...]:
    """Executors on their way out, as a report has them now. `prefix`: of the names of their pods."""
    now, wall = time.monotonic(), datetime.datetime.now(datetime.UTC)
    return tuple(described(drain, prefix, now, wall) for drain in target.draining.values())


def described(draining: Draining, prefix: str, clock: float, wall: datetime.datetime) -> ExecutorDrain:
    """An entry of the report: pod, since and deadline as wall-clock times, for people."""
    since = wall - datetime.timedelta(seconds=clock - draining.since)
    deadline = wall + datetime.timedelta(seconds=draining.deadline - clock)
    return ExecutorDrain(f"{prefix}-exec-{draining.executor}", since, deadline)
