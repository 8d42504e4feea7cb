"""What became of the Spark jobs of a batch (docs/protocol.md, "Batches" 6 and "Release").

One batch is open at a time, so every job that began since the batch was issued belongs to it, whatever its job group. Spark's own status store is
asked; an id it no longer knows counts as failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from sluice_checkpoints.errors import SluiceError

SUCCEEDED = "SUCCEEDED"


class JobsNotDone(SluiceError):
    """A job of the batch failed, was cancelled or still runs, though `process` returned: the batch may not be committed."""


class Jobs:
    """Watches one SparkContext, over py4j."""

    def __init__(self, context: SparkContext) -> None:
        self._scala = context._jsc.sc()  # noqa: SLF001 - PySpark shows none of this
        self._next = self._begun()
        self._lost = 0

    def _begun(self) -> int:
        return int(self._scala.dagScheduler().numTotalJobs())

    def issue(self) -> None:
        """A batch begins: jobs from now on are its own."""
        self._next = self._begun()

    def check(self) -> None:
        """Raises unless every job of the batch succeeded.

        Raises:
            JobsNotDone: naming the jobs.
        """
        self._scala.listenerBus().waitUntilEmpty()
        outcome = {number: self._outcome(number) for number in self._numbers()}
        if bad := {number: status for number, status in outcome.items() if status != SUCCEEDED}:
            raise JobsNotDone(f"the function that got the batch returned, but Spark jobs are not done: {bad}; let errors of a read out of it")

    def _numbers(self) -> Iterable[int]:
        return range(self._next, self._begun())

    def _outcome(self, number: int) -> str:
        try:
            return str(self._scala.statusStore().job(number).status().toString())
        except Py4JJavaError as error:
            if "NoSuchElementException" not in str(error.java_exception.toString()):
                raise
            return "UNKNOWN"

    def troubled(self) -> bool:
        """Whether, since the last call, a task of the batch failed or was killed, or an executor was lost.

        Such a task's worker may still be running for a while, and so may an executor that only the network has lost.
        """
        bad = any(stage.numFailedTasks() or stage.numKilledTasks() for stage in self._stages())
        lost = sum(1 for executor in self._executors() if not executor.isActive() and not _left_by_itself(executor))
        more, self._lost = lost > self._lost, lost
        return bad or more

    def _stages(self) -> Iterator[Any]:
        store = self._scala.statusStore()
        return (store.lastStageAttempt(stage) for stage in stages(store, self._numbers()))

    def _executors(self) -> Iterator[Any]:
        return each(self._scala.statusStore().executorList(False))  # noqa: FBT003 - py4j has no keyword arguments


def _left_by_itself(executor: Any) -> bool:
    reason = executor.removeReason()
    return bool(reason.isDefined()) and "decommission" in str(reason.get()).lower()


def stages(store: Any, numbers: Iterable[int]) -> Iterator[int]:
    """Ids of the stages of jobs, as a status store has them."""
    return (stage for number in numbers for stage in each(store.job(number).stageIds()))


def each(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    return (sequence.apply(i) for i in range(sequence.size()))
