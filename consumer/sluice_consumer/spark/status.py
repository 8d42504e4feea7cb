"""What Spark knows of its jobs, SQL executions and executors: the status store and the scheduler, over py4j. Nothing is judged here (`jobs`)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

RUNNING, SUCCEEDED, FAILED, FORGOTTEN = "RUNNING", "SUCCEEDED", "FAILED", "FORGOTTEN"
SCAN = "Scan sluice"  # what Spark calls a read of ours in a job's graph, after "Batch" or "MicroBatch"
CLEAN = "Some()"  # the error message of an SQL execution that returned its result
HANDS_OUT_LATER = "Dataset.toPythonIterator"  # of `toLocalIterator`: its execution ends before the job of its rows begins
WORDS = 500  # characters of an error
SQL_STATE = re.compile(r"\s+SQLSTATE: \w+\s*$")
DROPPED = "queue.appStatus.numDroppedEvents"
HEARTBEAT, SPARK_HEARTBEAT = "spark.executor.heartbeatInterval", "10s"  # the second is Spark's default


def heartbeat(spark: SparkSession) -> float:
    """Seconds between two reports of a session's executors on the tasks that run."""
    settings: Any = spark.sparkContext._jsc.sc().conf()  # noqa: SLF001 - it reads "10s" and "2222ms" as Spark does
    return float(settings.getTimeAsMs(HEARTBEAT, SPARK_HEARTBEAT)) / 1000


@dataclass(frozen=True, slots=True)
class Execution:
    """One SQL query of a job.

    Attributes:
        ended: when it ended, in epoch milliseconds; None: it has not.
        clean: it returned its result, all of it.
        nested: it ran inside another one.
    """

    number: int
    text: str
    ended: int | None
    clean: bool
    nested: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What a person or a rule may ask about one job.

    Attributes:
        name: where the user's code began it, as far as Spark knows.
        reads: it may read a batch: a scan of ours is in its graph, or Spark knows no graph.
        why: the final message of what failed in it.
    """

    name: str
    reads: bool
    execution: Execution | None
    why: str


class SparkStatus:
    """One session's."""

    def __init__(self, spark: SparkSession) -> None:
        self._scala: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark shows none of this
        self._store: Any = self._scala.statusStore()
        self._sql: Any = spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001
        self._dropped: Any = self._scala.listenerBus().metrics().metricRegistry().getCounters().get(DROPPED)

    # -- jobs ----------------------------------------------------------------------------------------------------------------------

    def begun(self) -> int:
        """How many jobs ever began; their numbers are below."""
        return int(self._scala.dagScheduler().numTotalJobs())

    def status(self, job: int) -> str:
        """One of the words above."""
        try:
            return str(self._store.job(job).status().toString())
        except Py4JJavaError as error:
            if "NoSuchElementException" not in str(error.java_exception.toString()):
                raise
            return FORGOTTEN

    def tags(self, job: int) -> frozenset[str] | None:
        """The tags that a job was begun with; None: the store does not know the job, or not yet."""
        try:
            return frozenset(str(self._store.job(job).jobTags().mkString(",")).split(","))
        except Py4JJavaError as error:
            if "NoSuchElementException" not in str(error.java_exception.toString()):
                raise
            return None

    def group(self, job: int) -> str | None:
        """The job's group; "" if Spark does not know the job."""
        try:
            group = self._store.job(job).jobGroup()
        except Py4JJavaError:
            return ""
        return str(group.get()) if group.isDefined() else None

    def active(self, job: int) -> bool:
        """Whether the scheduler still works on it. Unlike the rest this does not depend on events."""
        return bool(self._scala.dagScheduler().jobIdToActiveJob().contains(job))

    def cancel(self, job: int) -> None:
        """Ends a job; its tasks are killed."""
        self._scala.cancelJob(job, "its batch failed, and is to be given out again")

    def facts(self, job: int) -> Facts:
        """All about a job that the store knows."""
        both = self._store.jobWithAssociatedSql(job)
        data, sql = both.productElement(0), both.productElement(1)
        execution = self._execution(int(sql.get())) if sql.isDefined() else None
        return Facts(str(data.name()), self._reads(job), execution, self._why(data))

    def _execution(self, number: int) -> Execution | None:
        option = self._sql.execution(number)
        if not option.isDefined():
            return None
        data = option.get()
        ended, later = data.completionTime(), HANDS_OUT_LATER in str(data.details())
        clean = not later and str(data.errorMessage().toString()) == CLEAN
        nested = int(data.rootExecutionId()) != number
        return Execution(number, str(data.description()), ended.get().getTime() if ended.isDefined() else None, clean, nested)

    def _reads(self, job: int) -> bool:
        try:
            graphs = each(self._store.operationGraphForJob(job))
            return any(name.endswith(SCAN) for graph in graphs for name in _names(graph.rootCluster()))
        except Py4JError:  # of a stage that the store has forgotten
            return True

    def failure(self, job: int) -> str:
        """Spark's reason of the stage that failed in this job, as a whole; "" if there is none."""
        return self._reason(self._store.job(job))

    def _why(self, job: Any) -> str:
        return last_words(self._reason(job))

    def _reason(self, job: Any) -> str:
        reasons = (self._store.lastStageAttempt(stage).failureReason() for stage in each(job.stageIds()))
        return next((str(reason.get()) for reason in reasons if reason.isDefined()), "")

    def disturbed(self, jobs: Iterable[int]) -> bool:
        """Whether a task of theirs failed or was killed, or a stage was repeated: Spark lets tasks of the former attempt run."""
        latest = (self._store.lastStageAttempt(stage) for stage in stages(self._store, jobs))
        return any(stage.attemptId() or stage.numFailedTasks() or stage.numKilledTasks() for stage in latest)

    def moved(self, of: Iterable[int] | None = None) -> tuple[int, ...]:
        """Numbers that change when a job begins, a task ends or records move. Those of running tasks come with the executors' heartbeats.

        Args:
            of: the jobs that count; None: all.
        """
        known = self._known_stages(of) if of is not None else None
        stages = [stage for stage in each(self._store.activeStages()) if known is None or int(stage.stageId()) in known]
        read = sum(s.inputRecords() + s.inputBytes() + s.shuffleReadRecords() for s in stages)
        written = sum(s.outputRecords() + s.outputBytes() + s.shuffleWriteRecords() for s in stages)
        return self.begun() if known is None else len(known), sum(s.stageId() + s.numCompleteTasks() for s in stages), int(read), int(written)

    def _known_stages(self, jobs: Iterable[int]) -> set[int]:
        """Stages of jobs; the store may not know one yet, or not any more."""
        known = set[int]()
        for job in jobs:
            with contextlib.suppress(Py4JJavaError):
                known.update(stages(self._store, (job,)))
        return known

    # -- events --------------------------------------------------------------------------------------------------------------------

    def drained(self, seconds: float) -> bool:
        """Waits until the store knows of all that has happened; whether that came about in time."""
        try:
            self._scala.listenerBus().waitUntilEmpty(int(seconds * 1000))
        except Py4JJavaError as error:
            if "TimeoutException" not in str(error.java_exception.toString()):
                raise
            return False
        return True

    def dropped(self) -> int:
        """How many events the store will never know of, for its queue was full."""
        return int(self._dropped.getCount()) if self._dropped is not None else 0

    # -- executors -----------------------------------------------------------------------------------------------------------------

    def executors(self) -> tuple[frozenset[str], int]:
        """Ids of those that are there, and how many there ever were, as far as the store remembers."""
        active = frozenset(str(executor.id()) for executor in each(self._store.executorList(True)))  # noqa: FBT003 - py4j has no keyword arguments
        return active, int(self._store.executorList(False).size())  # noqa: FBT003

    def gone(self) -> dict[str, str]:
        """Why each of those left that are not there any more, by id."""
        listed = each(self._store.executorList(False))  # noqa: FBT003
        reasons = ((str(ended.id()), ended.removeReason()) for ended in listed if not ended.isActive())
        return {executor: str(reason.get()) if reason.isDefined() else "" for executor, reason in reasons}


def _names(cluster: Any) -> Iterator[str]:
    yield str(cluster.name())
    for child in each(cluster.childClusters()):
        yield from _names(child)


def last_words(reason: str) -> str:
    """The error itself, of Spark's reason: the last line before the first Java stack, without the Python one."""
    text = SQL_STATE.sub("", reason.partition("\n\tat ")[0]).strip()
    return text[text.rfind("\n") + 1 :].strip()[:WORDS]


def stages(store: Any, numbers: Iterable[int]) -> Iterator[int]:
    """Ids of the stages of jobs, as a status store has them."""
    return (stage for number in numbers for stage in each(store.job(number).stageIds()))


def each(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    return (sequence.apply(i) for i in range(sequence.size()))
