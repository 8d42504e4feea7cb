"""What became of the Spark jobs of one streaming query. Other queries and jobs of the session do not count."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sluice_checkpoints.errors import Refused
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.poison import worker_errors
from sluice_consumer.poison.causes import TaskRefusal
from sluice_consumer.spark.jobs import DRAIN_SECONDS, Jobs
from sluice_consumer.spark.status import FAILED, Facts, SparkStatus

UNKNOWN = ""  # of a job that Spark has forgotten: it counts as the query's, and as failed
START_SECONDS = 30.0  # from Spark's first question until `start` has returned; the two overlap by a moment


class QueryJobs(Jobs):
    """Watches the jobs of a query's run; Spark gives them the run's id as their group."""

    def __init__(self, spark: SparkSession) -> None:
        self._groups = SparkStatus(spark)
        super().__init__(self._groups)
        self._query: StreamingQuery | None = None
        self._known = threading.Event()

    def of(self, query: StreamingQuery) -> None:
        """From now on it is known whose jobs count."""
        self._query = query
        self._known.set()

    def query(self) -> StreamingQuery:
        """The query, once it is known.

        Raises:
            Refused: it was not started by `Source.start`.
        """
        if not self._known.wait(START_SECONDS) or self._query is None:
            raise Refused("the query was started by writer.start(), and its jobs cannot be watched: start it by source.start(writer)")
        return self._query

    def run(self, _plan: BatchPlan) -> None:
        """An `Engine` whose batch Spark has run already: returns if its jobs succeeded.

        Raises:
            JobsNotDone: one did not, though Spark counts the batch as done: a function of foreachBatch swallowed it.
            Refused: the query was not started by `Source.start`, so its jobs are unknown.
        """
        self.query()
        try:
            self.check()
        finally:
            self.observe()
        self.issue()

    def refused(self) -> TaskRefusal | None:
        """What a task refused while it read the batch; None: nothing. Of an error that a function of foreachBatch met, Spark keeps the text alone."""
        self._groups.drained(DRAIN_SECONDS)
        failed = (job for job, status in self._statuses() if status == FAILED)
        raised = (worker_errors.parsed(self._groups.failure(job)) for job in failed)
        return next((worker.refused for worker in raised if worker and worker.refused), None)

    def _numbers(self) -> Iterable[int]:
        return (number for number in super()._numbers() if self._query is not None and self._groups.group(number) in {self._query.runId, UNKNOWN})

    def _needless(self, facts: Facts) -> bool:
        """Only queries inside a batch count: the batch as a whole is one too, and it returns although its function swallowed a failed job."""
        return facts.execution is not None and facts.execution.nested and super()._needless(facts)
