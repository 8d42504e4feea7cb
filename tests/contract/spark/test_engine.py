"""What the driver believes about Spark: reads replay, partial reads are closed, failed jobs are seen and running ones waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from conftest_spark import RECORDS, SHARDS, Epoch, configuration
from pipelines_of_tests import seen
from pyspark.sql import SparkSession
from worker_look import WorkerLook

from sluice_checkpoints.errors import Refused
from sluice_consumer.config import StreamConfig
from sluice_consumer.spark.data_source import SluiceDataSource, register
from sluice_consumer.spark.engine import ProcessExited
from sluice_consumer.spark.jobs import JobsNotDone

pytestmark = pytest.mark.spark


@pytest.fixture
def epoch(spark: SparkSession, aws: StreamConfig) -> Iterator[Callable[[str], Epoch]]:
    seen.clear()
    yield lambda pipeline: Epoch(spark, configuration(aws, f"pipelines_of_tests:{pipeline}"))
    for thread in [s for s in seen if isinstance(s, threading.Thread)]:
        thread.join()


def test_a_batch_delivers_every_record_once(epoch: Callable[[str], Epoch]) -> None:
    one = epoch("collect")
    rows = one.batch()
    assert sum(row.records for row in rows) == RECORDS
    assert len(rows) == SHARDS
    one.batch()
    assert seen == [(1, list(range(RECORDS))), (2, [])]


def test_every_further_action_reads_the_same_batch(epoch: Callable[[str], Epoch]) -> None:
    epoch("twice").batch()
    assert seen == [(RECORDS, RECORDS, 2 * RECORDS), (1, list(range(RECORDS)))]


def test_a_batch_that_was_not_read_is_closed_and_loses_nothing(epoch: Callable[[str], Epoch]) -> None:
    one = epoch("nothing")
    rows = one.batch()
    assert [row.records for row in rows] == [0] * SHARDS
    assert all(row.start == row.end for row in rows)


def test_a_batch_read_in_part_moves_only_what_was_read(epoch: Callable[[str], Epoch]) -> None:
    one = epoch("a_look")
    rows = one.batch()
    assert seen == [1]
    assert {row.batch for row in rows} == {1}
    assert any(row.records for row in rows)


def test_a_failed_job_that_process_swallowed_keeps_the_batch_open(epoch: Callable[[str], Epoch]) -> None:
    """What was read by nobody may not count as processed."""
    one = epoch("swallow")
    with pytest.raises(JobsNotDone, match="FAILED"):
        one.batch()
    assert seen
    assert one.consumer.store.consumer().committed == 0  # type: ignore[union-attr]
    assert not one.engine.quiet()


def test_a_job_that_still_reads_is_waited_for(spark: SparkSession, epoch: Callable[[str], Epoch]) -> None:
    """A job of a thread of its own belongs to the batch too: it may bind shards, and the commit counts them."""
    rows = epoch("leave_running").batch()
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    assert sum(row.records for row in rows) == RECORDS


def test_a_process_that_exits_has_not_done_its_batch(epoch: Callable[[str], Epoch]) -> None:
    """`sys.exit(0)`, by which command lines end, says nothing about the batch; as the end of the driver it would look like a drain."""
    one = epoch("leave")
    with pytest.raises(ProcessExited, match=r"pipelines_of_tests:leave called sys\.exit\(0\) in batch 1"):
        one.batch()
    assert one.consumer.store.consumer().committed == 0  # type: ignore[union-attr]


def test_an_interrupt_stays_an_interrupt(epoch: Callable[[str], Epoch]) -> None:
    """A notebook's stop button ends the cell; the batch is not committed."""
    one = epoch("interrupt")
    with pytest.raises(KeyboardInterrupt):
        one.batch()
    assert one.consumer.store.consumer().committed == 0  # type: ignore[union-attr]


def test_a_batch_that_was_refused_before_any_job_leaves_nobody_at_work(epoch: Callable[[str], Epoch]) -> None:
    one = epoch("refuse")
    with pytest.raises(Refused, match=r"pipeline\.args\.path"):
        one.batch()
    assert one.engine.quiet()


def test_an_error_of_process_keeps_the_batch_open_and_it_comes_again_the_same(epoch: Callable[[str], Epoch]) -> None:
    one = epoch("fail")
    with pytest.raises(RuntimeError, match="the sink is full"):
        one.batch()
    bound = one.consumer.store.shards()
    again = Epoch(one.spark, one.config)
    rows = {row.id: row for row in again.consumer.store.shards().values()}
    assert {i: (r.start, r.end, r.batch) for i, r in rows.items()} == {i: (r.start, r.end, r.batch) for i, r in bound.items()}
    plan = again.consumer.plan()
    assert plan is not None
    assert plan.replay


def test_a_worker_that_has_read_keeps_its_threads_has_little_to_collect_and_no_pandas(
    spark: SparkSession, epoch: Callable[[str], Epoch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark collects garbage after every task of every batch; to import pandas is the better part of a cold executor's first task."""
    monkeypatch.setitem(spark.sparkContext.environment, "WORKERS", "new ones")  # other tests' have read other streams
    epoch("collect").batch()
    spark.dataSource.register(WorkerLook)
    workers = [row for row in spark.read.format("workers").load().collect() if row.has_read]
    assert workers
    assert not [row for row in workers if row.tracked > 5_000 or row.pandas]
    assert {row.threads for row in workers} <= set(range(1, SHARDS + 1))


def test_a_source_is_registered_in_each_session_of_one_spark(spark: SparkSession) -> None:
    """A notebook's own session had run a consumer, and the next one runs in a session of its own."""
    register(spark, SluiceDataSource)
    second = spark.newSession()
    register(second, SluiceDataSource)
    register(spark, SluiceDataSource)
    register(second, SluiceDataSource)


def test_no_worker_has_an_archive_on_its_path(epoch: Callable[[str], Epoch], spark: SparkSession) -> None:
    """Spark 4.1 has each of them read again in every task, and in both workers that plan a batch (docs/performance.md)."""
    epoch("collect").batch()
    spark.dataSource.register(WorkerLook)
    (counts,) = {(row.archives, row.archives_of_planning) for row in spark.read.format("workers").load().collect() if row.has_read}
    assert counts == (0, 0)
