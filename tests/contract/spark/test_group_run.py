"""A run in the driver of a group, over the session of all tests: how it is ended, and how that is proven. Real Spark, emulated AWS."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from conftest_spark import configuration
from patience import PATIENCE
from pipelines_of_tests import seen
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from test_embedded_session import discard_closed_workers

from sluice_checkpoints.protocol.lease import Watcher, take_over
from sluice_consumer.config import Config, StreamConfig
from sluice_consumer.group import prepare_watch
from sluice_consumer.group.consumer_run import ConsumerRun, RunPorts
from sluice_consumer.group.messages import Begin
from sluice_consumer.process import supervisor, wiring
from sluice_consumer.spark.job_memory import JobMemory
from sluice_consumer.spark.job_tags import TaggedWork, tagged
from sluice_consumer.spark.status import SparkStatus

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PAUSE = threading.Event()  # never set


@pytest.fixture(autouse=True)
def clean(spark: SparkSession) -> Iterator[None]:
    seen.clear()
    yield
    discard_closed_workers(spark)


def until(met: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < limit
        PAUSE.wait(0.05)


def begun(spark: SparkSession, config: Config) -> ConsumerRun:
    store = supervisor.open_table(config)
    taken = take_over(store, supervisor.claim(config), Watcher())
    begin = Begin(config.name, taken.epoch.generation, taken.epoch.token, taken.how, 0, taken.sent)
    run = ConsumerRun(config, begin, RunPorts(spark, 0.25, doing=lambda _armed: None, stuck=lambda *why: pytest.fail(str(why))))
    run.start()
    return run


@pytest.mark.parametrize("pipeline", ["hang_in_python", "hang_in_a_task"])
def test_a_run_whose_lease_is_lost_ends_though_it_hangs_and_another_consumer_goes_on(spark: SparkSession, aws: StreamConfig, pipeline: str) -> None:
    lost = begun(spark, replace(configuration(aws, f"pipelines_of_tests:{pipeline}"), name="lost"))
    until(lambda: "hangs" in seen if pipeline == "hang_in_python" else bool(spark.sparkContext.statusTracker().getActiveJobsIds()))
    config = replace(configuration(aws, "pipelines_of_tests:collect", interval_seconds=0.1), name="kept")
    kept = begun(spark, config)
    asked = time.monotonic()
    while lost.result is None:
        lost.end()
        PAUSE.wait(0.5)
        assert time.monotonic() - asked < PATIENCE
    assert not lost.result.quiet
    until(lambda: _committed(config) >= 1)
    kept.drain.set()
    until(lambda: kept.result is not None)
    assert kept.result is not None
    assert (kept.result.code, kept.result.reason, kept.result.quiet) == (0, "Drained", True)


def test_a_prepare_that_hangs_ends_its_own_run_and_another_consumer_goes_on(
    spark: SparkSession, aws: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(configuration(aws, "pipelines_of_tests:collect", interval_seconds=0.1), name="kept")
    kept = begun(spark, config)
    until(lambda: _committed(config) >= 1)
    monkeypatch.setattr(prepare_watch, "START_SECONDS", 0.0)
    hung = begun(spark, replace(configuration(aws, "pipelines_of_tests:prepared_for_ever"), name="hung"))
    until(lambda: "prepares" in seen and hung.result is not None)
    assert hung.result is not None
    assert (hung.result.code, hung.result.reason, hung.result.quiet) == (1, "StartOverdue", False)
    assert "called" not in seen
    assert kept.result is None
    kept.drain.set()
    until(lambda: kept.result is not None)
    assert kept.result is not None
    assert (kept.result.code, kept.result.reason, kept.result.quiet) == (0, "Drained", True)


def _committed(config: Config) -> int:
    row = wiring.store(config).consumer()
    return row.committed if row else 0


def test_work_is_over_when_no_task_of_a_cancelled_job_works_and_jobs_of_others_do_not_count(spark: SparkSession) -> None:
    """A cancelled job is over for Spark's scheduler before its tasks are."""
    mine, theirs = TaggedWork(spark, "sluice-mine-1"), TaggedWork(spark, "sluice-theirs-1")

    def job() -> None:
        with tagged(spark.sparkContext, "sluice-mine-1"):
            spark.sparkContext.parallelize([0], 1).map(lambda _: threading.Event().wait(600)).collect()

    thread = threading.Thread(target=lambda: _quietly(job))
    assert mine.is_over()
    thread.start()
    until(lambda: not mine.is_over())
    assert theirs.is_over()
    mine.cancel()
    thread.join(PATIENCE)
    until(mine.is_over)


def test_a_memory_knows_whose_each_job_was_and_which_ended_well(spark: SparkSession) -> None:
    """Of a real Spark, whose store hears of a job a moment after it began."""
    memory = JobMemory(status := SparkStatus(spark))
    first = status.begun()
    for tag, divisor in (("sluice-mine-1", 1), ("sluice-theirs-1", 0)):
        with tagged(spark.sparkContext, tag):
            _quietly(lambda by=divisor: spark.sparkContext.parallelize([1], 1).map(lambda one: one / by).collect())  # type: ignore[misc]
    until(lambda: memory.observe() is None and memory.succeeded(first) and memory.tags(first + 1) is not None)
    memory.observe()
    assert [(memory.tags(job), memory.succeeded(job)) for job in (first, first + 1)] == [({"sluice-mine-1"}, True), ({"sluice-theirs-1"}, False)]
    assert memory.tags(first + 2) is None


def _quietly(work: Callable[[], Any]) -> None:
    with contextlib.suppress(PySparkException, Py4JJavaError):  # cancelled
        work()
