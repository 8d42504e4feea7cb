"""What became of the Spark jobs of one streaming query. The session may run other queries and jobs, which are nobody's business here."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from sluice_consumer.jobs import Jobs
from sluice_consumer.planner import BatchPlan

UNKNOWN = "?"  # of a job that Spark has forgotten: it counts as the query's, and as failed


class QueryJobs(Jobs):
    """Watches the jobs of a query's run; Spark gives them the run's id as their group."""

    def __init__(self, context: SparkContext) -> None:
        super().__init__(context)
        self._query: StreamingQuery | None = None
        self._known = threading.Event()
        self._troubled_at = float("-inf")

    def of(self, query: StreamingQuery) -> None:
        """From now on it is known whose jobs count."""
        self._query = query
        self._known.set()

    def run(self, _plan: BatchPlan) -> None:
        """An `Engine` whose batch Spark has run already: returns if its jobs succeeded.

        Raises:
            JobsNotDone: one did not, though Spark counts the batch as done: a function of foreachBatch swallowed it.
        """
        self._known.wait()
        try:
            self.check()
        finally:
            self.look()
        self.issue()

    def look(self) -> None:
        """Notes whether a task of the batch failed or was killed; such a task's worker may still be running for a while."""
        try:
            troubled = self.troubled()
        except Py4JJavaError:  # a job that Spark no longer knows
            troubled = True
        if troubled:
            self._troubled_at = time.monotonic()

    def settle(self) -> None:
        """Waits until Spark knows what became of every task, and looks."""
        self._scala.listenerBus().waitUntilEmpty()
        self.look()

    def quiet(self, seconds: float) -> bool:
        """Whether that has been the case for so long that nobody of this life can still be working."""
        return time.monotonic() - self._troubled_at > seconds

    def _numbers(self) -> Iterable[int]:
        return (number for number in super()._numbers() if self._query is not None and self._group(number) in {self._query.runId, UNKNOWN})

    def _group(self, number: int) -> str | None:
        try:
            group = self._scala.statusStore().job(number).jobGroup()
        except Py4JJavaError:
            return UNKNOWN
        return str(group.get()) if group.isDefined() else None
