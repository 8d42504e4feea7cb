"""`sluice_consumer.testing.replays`: it finds sinks that lose or double records, and passes those that do not."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import planted
import pyarrow.dataset as ds
import pytest
from py4j.java_gateway import JavaMember
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.testing import ReplayVerdict, TestRecord, batch, replays, trials

pytestmark = pytest.mark.spark
SHARDS = ("shardId-0", "shardId-1", "shardId-2")
Tried = Callable[..., ReplayVerdict]


@pytest.fixture
def records(spark: SparkSession) -> DataFrame:
    return batch(spark, [TestRecord({"id": n}, shard=SHARDS[n % 3]) for n in range(9)], tasks=2)


@pytest.fixture
def tried(records: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tried:
    """Tries a pipeline that writes to `args.path`. Batches are shortened where a test asks for it: that takes twice the time."""

    def run(process: Any, held: Callable[[Any], Any], made: DataFrame = records, *, shortened: bool = False, **how: Any) -> ReplayVerdict:
        if not shortened:
            monkeypatch.setattr(trials, "may_fail", lambda _kill: False)
        return replays(process, made, sink=lambda n: {"path": f"{tmp_path}/{n}"}, held=lambda args: held(args["path"]), **how)

    return run


def in_files(path: str) -> list[str]:
    found: list[str] = ds.dataset(path, format="parquet").to_table()["sequenceNumber"].to_pylist() if Path(path).exists() else []
    return found


def in_database(path: str) -> list[str]:
    with planted.database(path) as database:
        return [sequence for (sequence,) in database.execute("SELECT sequence FROM orders")]


def said(verdict: ReplayVerdict) -> dict[str, str]:
    return {f"{miscount.point.when} {miscount.point.what}": str(miscount) for miscount in verdict.failures}


@pytest.mark.slow
def test_an_append_doubles_what_it_had_written(tried: Tried) -> None:
    """A kill before it does no harm; after it, also after the return, its replay adds the same rows."""
    verdict = tried(planted.append, in_files)
    assert list(said(verdict)) == ["after DataFrameWriter.parquet", "after the return of process, before the commit"]
    assert [len(miscount.extra) for miscount in verdict.failures] == [9, 9]
    assert "killed after DataFrameWriter.parquet at planted.py:" in str(verdict)
    assert "before DataFrameWriter.parquet" in {f"{point.when} {point.what}" for point in verdict.points}


@pytest.mark.slow
def test_a_marker_that_is_written_first_loses_the_batch(tried: Tried) -> None:
    verdict = tried(planted.marker_first, in_files)
    assert list(said(verdict)) == ["after open", "before DataFrameWriter.parquet"]
    assert {len(miscount.missing) for miscount in verdict.failures} == {9}


@pytest.mark.slow
def test_a_look_up_does_not_help_a_marker_that_comes_too_late(tried: Tried) -> None:
    """Between the rows and the marker, nobody knows of them. Once the marker is there, a replay is skipped."""
    verdict = tried(planted.look_then_append, in_files)
    assert list(said(verdict)) == ["after DataFrameWriter.parquet", "before os.open"]


def test_what_a_module_remembers_dies_if_the_pipeline_is_named(tried: Tried) -> None:
    """A function that is handed over keeps its module, and so its memory."""
    verdict = tried("planted:remembers", in_files)
    assert set(said(verdict)) == {"after DataFrameWriter.parquet", "after the return of process, before the commit"}


def test_a_replay_that_fails_is_no_success(tried: Tried) -> None:
    """Though each record is there once: this batch never ends."""
    verdict = tried(planted.refuses_what_is_there, in_files)
    assert "the replay failed: AnalysisException" in said(verdict)["after DataFrameWriter.parquet"]


@pytest.fixture
def in_one_task(spark: SparkSession) -> DataFrame:
    """Two shards with four records each: of two tasks, the other one may have ended at a kill, or not."""
    return batch(spark, [TestRecord(str(n), shard=SHARDS[n % 2]) for n in range(8)], tasks=1)


@pytest.mark.slow
def test_calls_in_tasks_without_a_key_double_a_shard_that_was_done(tried: Tried, in_one_task: DataFrame) -> None:
    """The calls are transactions: half-way through the first one, nothing is stored."""
    verdict = tried(planted.without_a_key, in_database, in_one_task)
    first, second = ("function 1 of foreach, call 1 in task 0", "function 1 of foreach, call 2 in task 0")
    wanted = {f"after {first}": 4, f"before {second}": 4, f"half-way through {second}": 4, f"after {second}": 8}
    found = {f"{miscount.point.when} {miscount.point.what}": len(miscount.extra) for miscount in verdict.failures}
    assert {point: found.pop(point) for point in wanted if point in found} == wanted
    assert set(found) == {"after Dataset.collectToPython", "after the return of process, before the commit"}


@pytest.mark.slow
def test_rows_that_are_sent_one_by_one_come_again_after_a_kill_half_way(tried: Tried, in_one_task: DataFrame) -> None:
    verdict = tried(planted.row_by_row, in_database, in_one_task)
    halves = [len(miscount.extra) for miscount in verdict.failures if miscount.point.when == "half-way through"]
    assert halves == [4]


def test_a_function_that_nothing_shows_is_named(tried: Tried) -> None:
    """Without its name only the jobs of the batch are seen; the moment after it is that after the return."""
    assert "after planted:insert" in said(tried(planted.inserts_from_the_driver, in_database, writes=["planted:insert"]))


@pytest.mark.slow
@pytest.mark.parametrize(("process", "held"), [(planted.overwrites, in_files), pytest.param(planted.upserts, in_database, marks=pytest.mark.lake)])
def test_a_right_pipeline_passes(tried: Tried, process: Any, held: Any) -> None:
    verdict = tried(process, held, shortened=True)
    verdict.check()
    assert verdict.once
    assert len(verdict.points) >= 3
    shortened = len(verdict.shortened)
    assert str(verdict) == f"each record once after {len(verdict.points)} kills and {shortened} shortened batch{'es' if shortened != 1 else ''}"


@pytest.mark.slow
def test_a_key_made_of_the_batch_doubles_what_a_shortened_batch_brings_again(tried: Tried, in_one_task: DataFrame) -> None:
    """No kill shows it: the whole batch has the same keys. Of the first shard half comes again under the next number, of the second all."""
    verdict = tried(planted.keyed_by_the_batch, in_database, in_one_task, shortened=True)
    assert verdict.failures
    assert all(miscount.shortened for miscount in verdict.failures)
    verdict.check(isolate=False)
    assert "shortened after a failure before function 1 of foreach, call 2 in task 0: 2 too many" in str(verdict)


def test_a_batch_of_one_record_is_not_shortened(tried: Tried, spark: SparkSession) -> None:
    assert tried(planted.overwrites, in_files, batch(spark, [1]), shortened=True).shortened == ()


def test_a_failure_that_process_swallows_is_no_reason_to_shorten(tried: Tried) -> None:
    """It returned: the batch is dealt with, and what is missing is missing."""
    verdict = tried(planted.swallows, in_files, shortened=True)
    assert [len(miscount.missing) for miscount in verdict.failures if miscount.shortened] == [9]


def test_a_killed_run_cleans_nothing_up(tried: Tried) -> None:
    """Its `finally` would take the lock away, and hide that a killed process leaves it."""
    verdict = tried(planted.locks, in_files)
    assert list(said(verdict)) == ["after os.open", "before DataFrameWriter.parquet"]


def test_nothing_stays_replaced(tried: Tried) -> None:
    before = (JavaMember.__call__, RDD.foreach, RDD.foreachPartition, open, os.rename)
    with pytest.raises(Refused, match="no_such"):
        tried(planted.append, in_files, writes=["planted:no_such"])
    with pytest.raises(ZeroDivisionError):
        tried(lambda _batch, _info: 1 / 0, in_files)
    tried(planted.append, in_files)
    assert (JavaMember.__call__, RDD.foreach, RDD.foreachPartition, open, os.rename) == before


@pytest.mark.parametrize(
    ("process", "held", "writes", "message"),
    [
        (lambda _batch, _info: None, in_files, (), r"writes: no write of `process` was seen"),
        (planted.append, lambda _: [], (), r"held: the sink holds nothing after an undisturbed run"),
        (planted.append, in_files, ["sqlite3:Connection.commit"], r"is not written in Python"),
    ],
)
def test_what_would_prove_nothing_is_refused(tried: Tried, process: Any, held: Any, writes: Any, message: str) -> None:
    with pytest.raises(Refused, match=message):
        tried(process, held, writes=writes)


def test_the_database_of_these_tests_has_transactions(tmp_path: Path) -> None:
    path = str(tmp_path / "any")
    planted.database(path).execute("INSERT INTO orders VALUES ('1')")
    assert in_database(path) == []
    assert sqlite3.threadsafety
