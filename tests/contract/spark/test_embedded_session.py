"""A consumer in a session that somebody else made. Real Spark, emulated AWS."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import boto3
import pytest
from conftest_spark import RECORDS, SHARDS, configuration
from pipelines_of_tests import FAILED, READ, seen, unchanged
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Fenced, LeaseHeld, Refused
from sluice_consumer import embedded
from sluice_consumer.config import BatchConfig, Config, StreamConfig
from sluice_consumer.embedded import LeaseLost
from sluice_consumer.poison.isolator import BatchOverdue
from sluice_consumer.process import supervisor, wiring
from sluice_consumer.process.lease_release import LeaseRelease
from sluice_consumer.process.supervisor import Heartbeats
from sluice_consumer.spark.jobs import JobsNotDone

pytestmark = pytest.mark.spark
PAUSE = threading.Event()  # never set: waiting on it lets other threads and processes work
WORKERS = 8  # more than the pool has
LEASE = 9.0  # seconds; in one process with a busy Spark, heartbeats of a shorter one may come late


def embedding(aws: StreamConfig, pipeline: str) -> Config:
    return replace(configuration(aws, f"pipelines_of_tests:{pipeline}", interval_seconds=0.1), lease_duration_seconds=LEASE)


@pytest.fixture(autouse=True)
def clean(spark: SparkSession) -> Iterator[None]:
    seen.clear()
    yield
    discard_closed_workers(spark)


def discard_closed_workers(spark: SparkSession) -> None:
    """A job that is cancelled with an interrupt may leave a Python worker in Spark's pool whose channel is closed.

    Spark 4.1 fails the next task that is given it (`PythonWorkerFactory.create`: ClosedChannelException), and forgets it then. On executors and in
    `executor.inDriver` a task has four attempts; this session, `local[2]`, has one.
    """
    for _ in range(WORKERS):
        with contextlib.suppress(PySparkException, Py4JJavaError):
            spark.range(WORKERS, numPartitions=WORKERS).mapInArrow(unchanged, "id long").count()
            return
    pytest.fail("Spark has no usable Python worker")


@pytest.mark.slow
def test_a_notebook_processes_everything_that_was_there_and_releases_its_lease(spark: SparkSession, aws: StreamConfig) -> None:
    config = embedding(aws, "collect")
    told: list[str] = []
    for generation in (1, 2):
        embedded.run(spark, config, until="tip", tell=told.append)
        row = wiring.store(config).consumer()
        assert row is not None
        assert (row.generation, row.released) == (generation, True)
    assert sorted(n for _, numbers in seen for n in numbers) == list(range(RECORDS))
    assert len(wiring.store(config).shards()) == SHARDS
    assert any(f"batch 1: {RECORDS} records of {SHARDS} shards" in line for line in told)


def arrivals(stream: StreamConfig) -> dict[int, datetime]:
    client = boto3.client("kinesis", endpoint_url=stream.kinesis_endpoint, region_name=stream.region)
    found: dict[int, datetime] = {}
    for shard in client.list_shards(StreamName=stream.name)["Shards"]:
        at = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        page = client.get_records(ShardIterator=client.get_shard_iterator(StreamName=stream.name, **at)["ShardIterator"])
        found |= {int(record["Data"]): record["ApproximateArrivalTimestamp"] for record in page["Records"]}
    return found


def test_a_notebook_reads_up_to_a_timestamp_and_later_from_there(spark: SparkSession, slow_stream: StreamConfig) -> None:
    config, arrived = embedding(slow_stream, "collect"), arrivals(slow_stream)
    until = sorted(arrived.values())[len(arrived) // 2]
    for _ in range(2):
        embedded.run(spark, config, until=until.isoformat(), tell=lambda _: None)
        assert sorted(n for _, numbers in seen for n in numbers) == sorted(n for n, at in arrived.items() if at < until)
    embedded.run(spark, config, until="tip", tell=lambda _: None)
    assert sorted(n for _, numbers in seen for n in numbers) == sorted(arrived)


def test_a_notebook_gives_its_configuration_as_a_mapping(spark: SparkSession, aws: StreamConfig) -> None:
    with pytest.raises(Refused, match="colour: unknown"):
        embedded.run(spark, {"colour": 1})
    with pytest.raises(Refused, match=r"stream\.region: missing"):
        embedded.run(spark, json.dumps({"stream": {"name": aws.name}, "checkpoints": {"table": "abc"}, "pipeline": {"entrypoint": "a:b"}}))


@pytest.mark.slow
def test_two_consumers_at_a_time_do_not_see_each_others_failed_jobs(spark: SparkSession, aws: StreamConfig) -> None:
    READ.clear()
    FAILED.clear()
    well, badly = (replace(embedding(aws, name), lease_duration_seconds=4 * LEASE) for name in ("wait_for_a_failure", "fail_beside_another"))
    refused = list[Exception]()

    def fail() -> None:
        try:
            embedded.run(spark.newSession(), badly, until="tip", tell=lambda _: None)
        except Exception as error:  # noqa: BLE001 - judged below
            refused.append(error)

    thread = threading.Thread(target=fail)
    thread.start()
    embedded.run(spark.newSession(), well, until="tip", tell=lambda _: None)
    thread.join(60)
    committed, refusing = (wiring.store(config).consumer() for config in (well, badly))
    assert committed is not None
    assert refusing is not None
    assert (committed.released, refusing.committed) == (True, 0)
    assert sorted(number for each in seen if isinstance(each, tuple) for number in each[1]) == list(range(RECORDS))
    assert isinstance(refused[0], JobsNotDone)
    assert "FAILED" in str(refused[0])


def test_a_notebook_stops_when_it_is_told_to(spark: SparkSession, aws: StreamConfig) -> None:
    config, drain = embedding(aws, "collect"), threading.Event()
    stopper = threading.Thread(target=lambda: (_until(lambda: bool(seen)), drain.set()))
    stopper.start()
    embedded.run(spark, config, drain=drain)
    stopper.join()
    row = wiring.store(config).consumer()
    assert row is not None
    assert row.released
    assert row.committed >= 1


@pytest.mark.parametrize("pipeline", ["hang_in_python", "hang_in_a_task"])
def test_a_batch_that_does_not_end_ends_a_notebooks_run_and_not_the_notebook(spark: SparkSession, aws: StreamConfig, pipeline: str) -> None:
    config, told = replace(embedding(aws, pipeline), batch=BatchConfig(max_seconds=12)), list[str]()
    with pytest.raises(BatchOverdue, match=rf"batch 1 of {SHARDS} shards has not ended .*process is at .*pipelines_of_tests\.py:\d+ in {pipeline}"):
        embedded.run(spark, config, tell=told.append)
    assert any(line.startswith("BatchOverdue: ") or "BatchOverdue: " in line for line in told)
    row = wiring.store(config).consumer()
    assert row is not None
    assert (row.released, row.committed) == (False, 0)


def test_a_drain_of_a_notebook_has_an_end(spark: SparkSession, aws: StreamConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with `maxSeconds: 0`; nobody kills this process."""
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 1.0)
    config, drain = replace(embedding(aws, "hang_in_python"), drain_timeout_seconds=1, batch=BatchConfig(max_seconds=0)), threading.Event()
    stopper = threading.Thread(target=lambda: (_until(lambda: bool(seen)), drain.set()))
    stopper.start()
    with pytest.raises(BatchOverdue, match="the time of a drain is over"):
        embedded.run(spark, config, drain=drain)
    stopper.join()


def _until(met: Callable[[], bool]) -> None:
    while not met():
        PAUSE.wait(0.05)


def test_an_error_of_process_reaches_the_notebook_and_the_batch_comes_again(spark: SparkSession, aws: StreamConfig) -> None:
    """No task failed, so the lease is released: the next run replays without a wait."""
    config = embedding(aws, "fail")
    with pytest.raises(RuntimeError, match="the sink is full"):
        embedded.run(spark, config, until="tip")
    row = wiring.store(config).consumer()
    assert row is not None
    assert (row.released, row.committed) == (True, 0)
    told = list[str]()
    embedded.run(spark, replace(config, pipeline=replace(config.pipeline, entrypoint="pipelines_of_tests:collect")), until="tip", tell=told.append)
    assert not [line for line in told if "was not released" in line]
    assert seen[0][0] == 1
    assert seen[0][1] == list(range(RECORDS))


@pytest.mark.parametrize("pipeline", ["fail_in_a_task", "fail_beside_a_job"])
def test_a_lease_is_released_only_when_no_task_of_a_failed_run_can_be_working(pipeline: str, spark: SparkSession, aws: StreamConfig) -> None:
    """A task failed, or was killed at the end of the run: not before a lease duration has passed."""
    config, end = embedding(aws, pipeline), LeaseRelease()
    with pytest.raises((RuntimeError, PySparkException, Py4JJavaError)):
        embedded.run_leaving(spark, config, threading.Event(), print, end)
    ended = time.monotonic()
    assert not end.release()
    assert not released(config)
    while not end.release():
        PAUSE.wait(0.2)
    assert time.monotonic() - ended > LEASE / 2
    assert released(config)


def released(config: Config) -> bool:
    row = wiring.store(config).consumer()
    assert row is not None
    return row.released


@pytest.mark.parametrize("pipeline", ["refuse_early", "refuse_after_a_look"])
def test_a_refusal_releases_the_lease_so_that_a_corrected_run_begins_at_once(pipeline: str, spark: SparkSession, aws: StreamConfig) -> None:
    """Before the first batch no job has run; in a batch all of its jobs are over. The lease is too long to wait for."""
    config = replace(embedding(aws, pipeline), lease_duration_seconds=60)
    with pytest.raises(Refused, match=r"^pipeline\.args\."):
        embedded.run(spark, config, until="tip")
    row = wiring.store(config).consumer()
    assert row is not None
    assert (row.generation, row.released, row.committed) == (1, True, 0)
    told = list[str]()
    embedded.run(spark, replace(config, pipeline=replace(config.pipeline, entrypoint="pipelines_of_tests:collect")), until="tip", tell=told.append)
    assert not [line for line in told if "was not released" in line]
    assert seen[0][1] == list(range(RECORDS))


def test_a_refusal_beside_a_job_that_runs_keeps_the_lease(spark: SparkSession, aws: StreamConfig) -> None:
    """A task may still be writing when the next run begins: it has to wait."""
    config = embedding(aws, "refuse_beside_a_job")
    with pytest.raises(Refused, match="no such table"):
        embedded.run(spark, config, until="tip")
    row = wiring.store(config).consumer()
    assert row is not None
    assert not row.released


@pytest.mark.parametrize(("pipeline", "error"), [("fail_beside_a_job", RuntimeError), ("interrupt_beside_a_job", KeyboardInterrupt)])
def test_jobs_that_still_run_when_a_run_fails_are_cancelled_before_its_heartbeats_stop(
    pipeline: str, error: type[BaseException], spark: SparkSession, aws: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run would work beside them. An interrupt of the notebook is such an end too."""
    active, real, at_the_end = spark.sparkContext.statusTracker().getActiveJobsIds, embedded.beating, list[list[int]]()

    @contextlib.contextmanager
    def looking(heart: Heartbeats, lost: Callable[[], None]) -> Iterator[None]:
        with real(heart, lost):
            try:
                yield
            finally:
                at_the_end.append(list(active()))

    monkeypatch.setattr(embedded, "beating", looking)
    with pytest.raises(error):
        embedded.run(spark, embedding(aws, pipeline), until="tip")
    assert at_the_end == [[]]


def test_two_runs_on_one_table_do_not_work_side_by_side(spark: SparkSession, aws: StreamConfig) -> None:
    config, drain = embedding(aws, "collect"), threading.Event()
    first = threading.Thread(target=embedded.run, args=(spark, config), kwargs={"drain": drain})
    first.start()
    _until(lambda: bool(seen))
    with pytest.raises(LeaseHeld):
        embedded.run(spark, config)
    drain.set()
    first.join()


def test_a_run_whose_lease_was_taken_ends_and_its_jobs_are_cancelled(spark: SparkSession, aws: StreamConfig) -> None:
    config = embedding(aws, "long_job")

    def steal() -> None:
        _until(lambda: bool(seen))
        store = wiring.store(config)
        row = store.consumer()
        assert row is not None
        assert store.take(row, replace(row, token="thief")) is not None

    thief = threading.Thread(target=steal)
    thief.start()
    with pytest.raises((Fenced, LeaseLost)):
        embedded.run(spark, config)
    thief.join()
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_a_session_that_runs_tasks_twice_is_refused(spark: SparkSession, aws: StreamConfig) -> None:
    settings: Any = spark.sparkContext._jsc.sc().conf()
    settings.set("spark.speculation", "true")
    try:
        with pytest.raises(Refused, match=r"spark\.speculation: must be false"):
            embedded.check_session(spark, configuration(aws, "a:b"))
    finally:
        settings.set("spark.speculation", "false")


class Far:
    """A session whose executors are elsewhere: only its master's address differs from a real one."""

    def __init__(self, spark: SparkSession) -> None:
        self.sparkContext = self
        self._jsc, self.master = spark.sparkContext._jsc, "yarn"


def test_a_session_whose_executors_would_outlive_the_lease_is_refused_with_what_to_set(spark: SparkSession, aws: StreamConfig) -> None:
    """Spark's defaults let an executor that is cut off work on for ten minutes."""
    settings: Any = spark.sparkContext._jsc.sc().conf()
    config, far = configuration(aws, "a:b"), Far(spark)
    ours = settings.get("spark.executor.heartbeatInterval")
    settings.remove("spark.executor.heartbeatInterval")
    with pytest.raises(Refused, match=r"works on for 610 s.*spark\.executor\.heartbeatInterval=333ms.*leaseDurationSeconds to 1830"):
        embedded.check_session(far, config)  # type: ignore[arg-type]
    embedded.check_session(far, replace(config, lease_duration_seconds=1830))  # type: ignore[arg-type]
    settings.set("spark.executor.heartbeatInterval", "333ms")
    settings.set("spark.executor.heartbeat.maxFailures", "2")
    try:
        embedded.check_session(far, config)  # type: ignore[arg-type]
    finally:
        settings.set("spark.executor.heartbeatInterval", ours)
        settings.remove("spark.executor.heartbeat.maxFailures")
