"""Ordinary queries are accepted whatever Spark does to end them early; what nobody read is refused, by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from conftest_spark import RECORDS, Epoch, configuration
from ordinary_queries import ADAPTIVE, GROUPS
from pipelines_of_tests import seen
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from sluice_consumer.config import PipelineConfig, StreamConfig
from sluice_consumer.spark.jobs import JobsNotDone
from sluice_consumer.spark.status import SparkStatus

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # a session of their own
LEAVE_JOBS = {"merged", "aggregated", "built"}  # groups of which some query ends before its jobs do

MAY_LEAVE_JOBS = {"parts"}  # a prefetched partition that nobody asked for any more, if the machine is slow


def idle(spark: SparkSession) -> bool:
    return not spark.sparkContext.statusTracker().getActiveJobsIds()


@pytest.fixture(autouse=True)
def alone(spark: SparkSession) -> None:
    while not idle(spark):
        threading.Event().wait(0.05)


@pytest.fixture
def adaptive(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[bool]:
    spark.conf.set(ADAPTIVE, str(request.param).lower())
    yield request.param
    spark.conf.set(ADAPTIVE, "true")


@pytest.mark.parametrize("adaptive", [True, False], indirect=True, ids=["adaptive", "plain"])
@pytest.mark.parametrize("group", sorted(GROUPS))
def test_ordinary_queries_are_accepted_of_a_batch_with_records_and_of_an_empty_one(
    spark: SparkSession, aws: StreamConfig, tmp_path: Path, group: str, *, adaptive: bool
) -> None:
    seen.clear()
    args = {"group": group, "path": str(tmp_path), "fails": adaptive and group == "whole"}
    config = replace(configuration(aws, "a:b"), pipeline=PipelineConfig("ordinary_queries:process", args))
    if args["fails"]:
        with pytest.raises(RuntimeError, match="the sink is full"):
            Epoch(spark, config).batch()
        config = replace(config, pipeline=PipelineConfig("ordinary_queries:process", args | {"fails": False}))
    epoch = Epoch(spark, config)
    records = [sum(row.records for row in epoch.batch()) for _ in range(2)]
    assert records == [RECORDS, 0]
    assert epoch.engine.quiet()
    assert group in MAY_LEAVE_JOBS or any(seen) == (adaptive and group in LEAVE_JOBS), f"{group}: {seen}"


@pytest.fixture
def epoch(spark: SparkSession, aws: StreamConfig) -> Iterator[Callable[[str], Epoch]]:
    seen.clear()
    yield lambda pipeline: Epoch(spark, configuration(aws, f"pipelines_of_tests:{pipeline}"))
    for thread in [one for one in seen if isinstance(one, threading.Thread)]:
        thread.join()


def committed(epoch: Epoch) -> Any:
    row = epoch.consumer.store.consumer()
    assert row is not None
    return row.committed


@pytest.mark.parametrize(
    ("pipeline", "named"),
    [
        ("swallow", r"job \d+ \(collect at \S+pipelines_of_tests\.py:\d+\) FAILED: ValueError: a task fails"),
        ("swallow_query", r"job \d+ \(save at .*, query \d+ \(my report\)\) FAILED: ValueError: a task fails"),
        ("swallow_rows", r"job \d+ \(toLocalIterator at \S+pipelines_of_tests\.py:\d+, query \d+ .*\) FAILED: ValueError: a task fails"),
        ("swallow_rows_later", r"job \d+ \(toLocalIterator at \S+pipelines_of_tests\.py:\d+, query \d+ .*\) FAILED: ValueError: a task fails"),
        ("swallow_cancelled", r"job \d+ \(collect at .*FAILED"),
    ],
    ids=["rdd", "query", "rows", "rows later", "cancelled"],
)
def test_a_failed_read_that_process_swallowed_is_refused_by_name(epoch: Callable[[str], Epoch], pipeline: str, named: str) -> None:
    one = epoch(pipeline)
    with pytest.raises(JobsNotDone, match=named):
        one.batch()
    assert committed(one) == 0
    assert not one.engine.quiet()


def test_a_job_that_reads_is_over_before_the_batch_is_closed(spark: SparkSession, epoch: Callable[[str], Epoch]) -> None:
    one = epoch("read_late")
    rows = one.batch()
    assert seen == [1], "the job did not outlive its query, and the test shows nothing"
    assert idle(spark)
    assert sum(row.records for row in rows) == RECORDS
    assert {row.id: row.end for row in rows} == {row.id: row.end for row in one.consumer.store.shards().values()}


def test_a_query_is_accepted_whose_job_fails_after_the_result_was_there(epoch: Callable[[str], Epoch]) -> None:
    """The result did not depend on it; the lease still waits for the workers of its failed tasks."""
    one = epoch("fail_late")
    one.batch()
    assert committed(one) == 1
    assert not one.engine.quiet()


def test_a_job_that_does_not_read_the_batch_is_left_alone(spark: SparkSession, epoch: Callable[[str], Epoch]) -> None:
    one = epoch("beside")
    one.batch()
    assert not idle(spark)
    assert one.engine.quiet()
    spark.sparkContext.cancelJobGroup("beside")


def test_a_stage_that_spark_repeated_is_trouble(aws: StreamConfig) -> None:
    """Spark lets the tasks of its first attempt go on, though its last attempt looks clean. A local executor that lost files ends its JVM later."""
    here = Path(__file__).with_name("one_batch.py")
    command = [sys.executable, str(here), "pipelines_of_tests:repeat", json.dumps(asdict(aws))]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join([str(here.parent), os.environ.get("PYTHONPATH", "")])}
    told = json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=300).stdout.splitlines()[-1])
    first, second = told["seen"]
    assert first == second != {}
    assert not told["quiet"]


class Stuck:
    """A listener of the user's, on his own queue, that does not return until it is told to."""

    class Java:
        """For py4j."""

        implements = ("org.apache.spark.scheduler.SparkListenerInterface",)

    def __init__(self) -> None:
        self.over = threading.Event()

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("on"):
            raise AttributeError(name)
        return self._wait

    def _wait(self, *_: object) -> None:
        self.over.wait()


def test_a_listener_that_stands_still_does_not_hold_a_batch(spark: SparkSession, epoch: Callable[[str], Epoch]) -> None:
    context: Any = spark.sparkContext
    ensure_callback_server_started(context._gateway)
    listener, bus = Stuck(), context._jsc.sc().listenerBus()
    bus.addToSharedQueue(listener)
    try:
        one = epoch("collect")
        one.batch()
        assert one.engine.quiet()
    finally:
        listener.over.set()
        bus.removeListener(listener)


def test_spark_counts_the_events_that_it_dropped(spark: SparkSession) -> None:
    assert SparkStatus(spark)._dropped is not None
