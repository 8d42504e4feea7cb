"""Pipelines that do what users do. They leave what they saw in `seen`."""

from __future__ import annotations

import contextlib
import operator
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused

seen: list[Any] = []


def collect(batch: DataFrame, info: Any) -> None:
    seen.append((info.batch, sorted(int(row.data) for row in batch.select("data").collect())))


def hang_in_python(_batch: DataFrame, _info: Any) -> None:
    seen.append("hangs")
    while True:
        time.sleep(0.01)


def _asleep(rows: Any) -> Any:
    for row in rows:
        time.sleep(600)
        yield row


def hang_in_a_task(batch: DataFrame, _info: Any) -> None:
    batch.rdd.mapPartitions(_asleep).collect()


def prepared_for_ever(_batch: DataFrame, _info: Any) -> None:
    """Is never called."""
    seen.append("called")


def _hang_in_a_task(spark: SparkSession, _args: Any) -> None:
    seen.append("prepares")
    spark.sparkContext.parallelize([0], 1).mapPartitions(_asleep).collect()


prepared_for_ever.prepare = _hang_in_a_task  # type: ignore[attr-defined]  # what the engine looks for


def twice(batch: DataFrame, info: Any) -> None:
    seen.append((batch.count(), batch.count(), batch.union(batch).count()))
    collect(batch, info)


def nothing(_batch: DataFrame, _info: Any) -> None:
    """Does not read at all."""


def a_look(batch: DataFrame, _info: Any) -> None:
    seen.append(len(batch.limit(1).collect()))


def _failing(rows: Any) -> Any:
    for _ in rows:
        raise ValueError("a task fails")
    yield from ()


def swallow(batch: DataFrame, _info: Any) -> None:
    try:
        batch.rdd.mapPartitions(_failing).collect()
    except Exception as error:  # noqa: BLE001 - what this pipeline is about
        seen.append(type(error).__name__)


READ, FAILED = threading.Event(), threading.Event()


def wait_for_a_failure(batch: DataFrame, info: Any) -> None:
    collect(batch, info)
    READ.set()
    assert FAILED.wait(60)


def fail_beside_another(batch: DataFrame, info: Any) -> None:
    assert READ.wait(60)
    swallow(batch, info)
    FAILED.set()


def swallow_query(batch: DataFrame, _info: Any) -> None:
    batch.sparkSession.sparkContext.setJobDescription("my report")
    try:
        batch.mapInArrow(_failing, batch.schema).write.format("noop").mode("overwrite").save()
    except Exception as error:  # noqa: BLE001 - what this pipeline is about
        seen.append(type(error).__name__)
    finally:
        batch.sparkSession.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def swallow_rows(batch: DataFrame, _info: Any) -> None:
    try:
        seen.append(len(list(batch.mapInArrow(_failing, batch.schema).toLocalIterator())))
    except Exception as error:  # noqa: BLE001 - what this pipeline is about
        seen.append(type(error).__name__)


def swallow_cancelled(batch: DataFrame, _info: Any) -> None:
    context = batch.sparkSession.sparkContext
    canceller = threading.Thread(target=lambda: (_until_a_job_runs(batch), context.cancelAllJobs()))
    canceller.start()
    try:
        batch.rdd.mapPartitions(_slow).collect()
    except Exception as error:  # noqa: BLE001 - what this pipeline is about
        seen.append(type(error).__name__)
    canceller.join()


def running(batch: DataFrame) -> int:
    context: Any = batch.sparkSession.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return len(context.statusTracker().getActiveJobsIds())


def _until_a_job_runs(batch: DataFrame) -> None:
    while not running(batch):
        threading.Event().wait(0.02)


def _empty(batch: DataFrame) -> DataFrame:
    """A table of keys without rows, of which Spark learns when it was read: slowly, for the batch's job has to have begun by then."""
    keys = batch.sparkSession.range(0, 2, 1, 2).selectExpr("concat('k', id) AS partitionKey", "id")
    return keys.mapInArrow(_late, keys.schema).filter("id > 5").repartition(2)


def _late(rows: Any) -> Any:
    time.sleep(1)
    yield from rows


def _joined_with_nothing(batch: DataFrame, function: Any) -> DataFrame:
    """A join whose other side, the batch, is still read when Spark knows that the result is empty."""
    return _empty(batch).hint("merge").join(batch.coalesce(1).mapInArrow(function, batch.schema), "partitionKey")


def _not_needed(batch: DataFrame, function: Any = iter) -> None:
    """Runs a query whose job goes on reading after it returned; `function` is applied to the rows then."""
    returned = Path(tempfile.mkdtemp()) / "returned"

    def afterwards(rows: Any) -> Any:
        patience = time.monotonic() + 60
        while not returned.exists():
            assert time.monotonic() < patience, "the query waits for a job that it does not need"
            time.sleep(0.02)
        yield from function(rows)

    _joined_with_nothing(batch, afterwards).write.format("noop").mode("overwrite").save()
    seen.append(running(batch))
    returned.touch()


def swallow_rows_later(batch: DataFrame, _info: Any) -> None:
    """Catches a failure among the rows of a query of which another job runs on: Spark says for longer that such a query succeeded."""
    rows = _joined_with_nothing(batch, _late).select("data").union(batch.mapInArrow(_failing, batch.schema).select("data"))
    try:
        seen.append(len(list(rows.toLocalIterator())))
    except Exception as error:  # noqa: BLE001 - what this pipeline is about
        seen.append(type(error).__name__)


def read_late(batch: DataFrame, _info: Any) -> None:
    _not_needed(batch)


def fail_late(batch: DataFrame, _info: Any) -> None:
    _not_needed(batch, _failing)


def beside(batch: DataFrame, _info: Any) -> None:
    context = batch.sparkSession.sparkContext

    def work() -> None:
        context.setJobGroup("beside", "something else")
        with contextlib.suppress(Exception):
            context.parallelize([1], 1).mapPartitions(_minute).collect()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    _until_a_job_runs(batch)
    batch.count()
    seen.append(thread)


def repeat(batch: DataFrame, _info: Any) -> None:
    """Loses the files of a shuffle between two actions: Spark repeats the stage that wrote them, and both actions succeed."""
    files = Path(str(batch.sparkSession.sparkContext.getConf().get("spark.local.dir")))
    counts = batch.rdd.map(lambda row: (row.shardId, 1)).reduceByKey(operator.add, 2)
    seen.append(dict(counts.collect()))
    for file in list(files.rglob("shuffle_*")):
        file.unlink()
    seen.append(dict(counts.collect()))


def leave(batch: DataFrame, _info: Any) -> None:
    batch.count()
    sys.exit(0)


def interrupt(batch: DataFrame, _info: Any) -> None:
    batch.count()
    raise KeyboardInterrupt


def refuse(_batch: DataFrame, _info: Any) -> None:
    raise Refused("pipeline.args.path: missing")


def refuse_early(_batch: DataFrame, _info: Any) -> None:
    """Is never called."""
    raise AssertionError


def _no_path(*_: Any) -> None:
    raise Refused("pipeline.args.path: missing")


refuse_early.prepare = _no_path  # type: ignore[attr-defined]  # as docs/interfaces.md has it


def refuse_after_a_look(batch: DataFrame, _info: Any) -> None:
    batch.count()
    raise Refused("pipeline.args.table: there is no such table")


def _slow(rows: Any) -> Any:
    list(rows)
    time.sleep(1.5)
    yield 1


def leave_running(batch: DataFrame, _info: Any) -> None:
    thread = threading.Thread(target=lambda: seen.append(batch.rdd.mapPartitions(_slow).collect()), daemon=True)
    thread.start()
    _until_a_job_runs(batch)
    seen.append(thread)


def fail(batch: DataFrame, _info: Any) -> None:
    batch.count()
    raise RuntimeError("the sink is full")


def fail_in_a_task(batch: DataFrame, _info: Any) -> None:
    batch.rdd.mapPartitions(_failing).collect()


def _minute(rows: Any) -> Any:
    list(rows)
    time.sleep(60)
    yield 1


def unchanged(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    return batches


def long_job(batch: DataFrame, info: Any) -> None:
    seen.append(info.batch)
    batch.rdd.mapPartitions(_minute).collect()


def _beside_a_job(batch: DataFrame) -> None:
    def work() -> None:
        with contextlib.suppress(Exception):  # it is cancelled
            batch.rdd.mapPartitions(_minute).count()

    InheritableThread(target=work, daemon=True).start()
    tracker = batch.sparkSession.sparkContext.statusTracker()
    while not tracker.getActiveJobsIds():
        threading.Event().wait(0.02)


def fail_beside_a_job(batch: DataFrame, _info: Any) -> None:
    _beside_a_job(batch)
    raise RuntimeError("the sink is full")


def interrupt_beside_a_job(batch: DataFrame, _info: Any) -> None:
    _beside_a_job(batch)
    raise KeyboardInterrupt


def refuse_beside_a_job(batch: DataFrame, _info: Any) -> None:
    _beside_a_job(batch)
    raise Refused("pipeline.args.table: there is no such table")
