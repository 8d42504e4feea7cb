"""Whose job it is, where several consumers run batches in one Spark: each job carries the tag of the epoch that began it.

A job without such a tag counts for every consumer. It comes from a thread that `process` started and that is no `InheritableThread`; a batch whose
read failed there must not be committed.

By its tag the jobs of one epoch are ended, and no others of the session.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterable, Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluice_consumer.spark.status import DROPPED, RUNNING, each

PREFIX = "sluice-"
TAG = re.compile(f"{PREFIX}(.+)-[0-9]+")
log = logging.getLogger(__name__)


def tag_of(consumer_id: str, generation: int) -> str:
    """The tag of an epoch's jobs. Spark's tags may be empty nowhere, and hold no comma; a consumer id is hexadecimal, or a name of a migration."""
    return f"{PREFIX}{consumer_id.replace(',', '_')}-{generation}"


def is_anothers(tags: Iterable[str], tag: str) -> bool:
    """Whether a job with these tags was begun by another consumer than that of `tag`. Without a tag of our own nobody knows.

    A former epoch of the same consumer is no other one. A thread that outlives a run, or one of a pool of Java's, hands on the tag that it was begun
    with. It may read the batch of the next epoch.
    """
    begun_by = {match[1] for match in map(TAG.fullmatch, tags) if match}
    own = TAG.fullmatch(tag)
    return own is not None and bool(begun_by) and own[1] not in begun_by


@contextlib.contextmanager
def tagged(context: SparkContext, tag: str) -> Iterator[None]:
    """Jobs that this thread begins in here carry the tag, and so do those of its `InheritableThread`s and of the queries that it runs."""
    context.addJobTag(tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)


class TaggedWork:
    """The jobs with one tag (`job_tags.tag_of`)."""

    def __init__(self, spark: SparkSession, tag: str) -> None:
        self._context, self._tag = spark.sparkContext, tag
        self._scala: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark shows none of this
        self._store: Any = self._scala.statusStore()
        self._counter: Any = self._scala.listenerBus().metrics().metricRegistry().getCounters().get(DROPPED)
        self._dropped = self._drops()
        self._over = set[int]()  # jobs that are proven to be so

    def cancel(self) -> None:
        """Cancels them. Their tasks are killed, and may take a moment."""
        self._context.cancelJobsWithTag(self._tag)

    def is_over(self) -> bool:
        """Whether no job is active, and no task of one. An answer that does not come, dropped events and repeated stages prove nothing.

        To be asked now and then, since Spark forgets stages before it forgets their jobs. A job is asked for until it is proven to be over.
        """
        try:
            jobs = set(self._jobs())
            working = {job for job in jobs - self._over if self._works(job)}
            self._over = jobs - working
            return not working and self._drops() == self._dropped
        except Exception:  # of a context that was stopped, too: its scheduler is None
            log.exception("Spark did not report whether tasks of %s work", self._tag)
            return False

    def _jobs(self) -> list[int]:
        return [int(job) for job in self._scala.statusTracker().getJobIdsForTag(self._tag)]

    def _works(self, job: int) -> bool:
        if self._scala.dagScheduler().jobIdToActiveJob().contains(job):
            return True
        try:
            known = self._store.job(job)  # events come in order: once the end of a job has come, so has the start of each of its tasks
            return str(known.status().toString()) == RUNNING or any(self._runs(int(stage)) for stage in each(known.stageIds()))
        except Py4JError:
            log.debug("Spark has forgotten a stage of job %d", job, exc_info=True)
            return True

    def _runs(self, stage: int) -> bool:
        """A stage that was repeated may have tasks of its former attempts, of which the store shows only the last."""
        last = self._store.lastStageAttempt(stage)
        return int(last.numActiveTasks()) > 0 or int(last.attemptId()) > 0

    def _drops(self) -> int:
        return int(self._counter.getCount()) if self._counter is not None else 0
