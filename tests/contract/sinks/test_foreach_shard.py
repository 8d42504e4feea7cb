"""The sink `foreach`: one call for each shard of a batch, its rows in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from conftest_sinks import Batch, info
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_consumer.redrive import redrive
from sluice_consumer.sinks import Part, foreach
from sluice_consumer.sinks.foreach import as_read
from sluice_consumer.spark.data_source import OPTION, SluiceDataSource

pytestmark = pytest.mark.spark


def upsert(path: str, rows: Any, part: Part, *, fail_after: int | None = None) -> None:
    with sqlite3.connect(path, timeout=60, isolation_level=None) as database:
        database.execute("BEGIN IMMEDIATE")
        database.execute("CREATE TABLE IF NOT EXISTS positions (consumer, shard, position, PRIMARY KEY (consumer, shard))")
        database.execute("CREATE TABLE IF NOT EXISTS orders (sequence, shard)")
        stored = database.execute("SELECT position FROM positions WHERE consumer = ? AND shard = ?", (part.consumer, part.shard)).fetchone()
        for number, row in enumerate(part.after(rows, stored[0] if stored else None)):
            if number == fail_after:
                raise OSError("the database is gone")
            database.execute("INSERT INTO orders VALUES (?, ?)", (row["sequenceNumber"], part.shard))
        database.execute("INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", (part.consumer, part.shard, part.position))


def stored(path: str) -> list[tuple[str, str]]:
    with sqlite3.connect(path) as database:
        return database.execute("SELECT sequence, shard FROM orders ORDER BY rowid").fetchall()


@pytest.mark.slow
def test_each_shards_rows_come_in_order_and_rows_that_come_again_are_skipped(tmp_path: Path, batch: Batch) -> None:
    path = str(tmp_path / "orders.db")
    for _ in range(2):
        foreach(batch(range(10)), info(1), lambda rows, part: upsert(path, rows, part))
    assert stored(path) == [(str(n), f"shardId-{n % 2}") for n in (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)]


@pytest.mark.slow
def test_a_failure_keeps_whole_parts_only(tmp_path: Path, batch: Batch) -> None:
    path = str(tmp_path / "orders.db")

    def fails(rows: Any, part: Part) -> None:
        upsert(path, rows, part, fail_after=3 if part.shard == "shardId-1" else None)

    with pytest.raises(Exception, match="the database is gone"):
        foreach(batch(range(10)), info(1), fails)
    assert {shard for _, shard in stored(path)} == {"shardId-0"}
    foreach(batch(range(10)), info(1), lambda rows, part: upsert(path, rows, part))
    assert sorted(int(sequence) for sequence, _ in stored(path)) == list(range(10))


@pytest.mark.slow
def test_a_batch_that_was_shortened_and_comes_in_other_parts_is_stored_once(tmp_path: Path, batch: Batch) -> None:
    """Stored but for the last shard; then the first half of a shard under the old number, and the rest with newer records under the next."""
    path = str(tmp_path / "orders.db")
    with pytest.raises(Exception, match="the database is gone"):
        foreach(batch(range(10)), info(1), lambda rows, part: upsert(path, rows, part, fail_after=1 if part.shard == "shardId-1" else None))
    for number, numbers in ((1, (0, 2)), (2, (4, 6, 8, 10, 1, 3)), (3, (5, 7, 9))):
        foreach(batch(numbers), info(number), lambda rows, part: upsert(path, rows, part))
    assert sorted(int(sequence) for sequence, _ in stored(path)) == list(range(11))


def test_redrives_that_are_older_than_the_stream_and_than_each_other_are_stored(tmp_path: Path, batch: Batch) -> None:
    path = str(tmp_path / "orders.db")
    for number, consumer, numbers in ((7, "c", (8,)), (1, "c-redrive", (4,)), (2, "c-redrive", (2,)), (2, "c-redrive", (2,))):
        foreach(batch(numbers), info(number, consumer), lambda rows, part: upsert(path, rows, part))
    assert [int(sequence) for sequence, _ in stored(path)] == [8, 4, 2]


def test_letters_of_a_redrive_come_in_one_part_of_each_shard(tmp_path: Path, spark: SparkSession) -> None:
    """Though Spark deals a list to all cores: the rest of a shard would be skipped as old. In the order of the shard."""
    path = str(tmp_path / "orders.db")
    letters = [DeadLetter("c", "s", f"shardId-{n // 9}", str(n), 0, 0, "k", b"x", n, 1, "odd") for n in (11, 2, 9, 4, 7, 0, 5, 6, 3, 8, 1, 10)]
    assert spark.sparkContext.defaultParallelism > 1
    foreach(redrive.frame(spark, letters), info(1, "c-redrive"), lambda rows, part: upsert(path, rows, part))
    assert sorted(stored(path), key=lambda row: row[1]) == [(str(n), f"shardId-{n // 9}") for n in range(12)]


APART: dict[str, Callable[[DataFrame], DataFrame]] = {
    "in two tasks": lambda rows: rows.repartition(2),
    "in two tasks, without a shuffle": lambda rows: rows.union(rows),
    "in one task": lambda rows: rows.union(rows.where("shardId = 'shardId-1'")).union(rows).coalesce(1),
}


@pytest.mark.parametrize("how", APART)
def test_rows_of_a_shard_that_come_apart_are_refused_before_any_is_stored(tmp_path: Path, batch: Batch, how: str) -> None:
    """A position would skip the rows of the other part, also once `process` is repaired."""
    path = str(tmp_path / "orders.db")
    with pytest.raises(Refused, match=r"came in several parts.*nothing was stored"):
        foreach(APART[how](batch(range(6))), info(1), lambda rows, part: upsert(path, rows, part))
    foreach(batch(range(6)), info(1), lambda rows, part: upsert(path, rows, part))
    assert sorted(int(sequence) for sequence, _ in stored(path)) == list(range(6))


@pytest.mark.parametrize("how", APART)
def test_only_what_moves_rows_is_looked_at_first(spark: SparkSession, how: str) -> None:
    """A batch of the data source is run once: it is never apart."""
    spark.dataSource.register(SluiceDataSource)
    read = spark.read.format("sluice").option(OPTION, "{}").load()
    kept = read.where("partitionKey <> 'x'").selectExpr("*", "explode(array(1, 2)) AS n")
    plans = [frame._jdf.queryExecution().optimizedPlan() for frame in (read, kept, APART[how](read))]
    assert [as_read(plan) for plan in plans] == [True, True, False]


def test_a_second_call_in_a_batch_is_refused_unless_it_has_a_name(tmp_path: Path, batch: Batch) -> None:
    """The first one's positions would skip its rows. A name has positions of its own."""
    path, issue = str(tmp_path / "orders.db"), info(1)
    first, second = batch(range(8)).where("sequenceNumber > 3"), batch(range(8)).where("sequenceNumber <= 3")
    foreach(first, issue, lambda rows, part: upsert(path, rows, part))
    with pytest.raises(Refused, match=r"second call in batch 1.*name="):
        foreach(second, issue, lambda rows, part: upsert(path, rows, part))
    foreach(second, issue, lambda rows, part: upsert(path, rows, part), name="old")
    assert sorted(int(sequence) for sequence, _ in stored(path)) == list(range(8))


def test_a_function_may_have_enough_of_a_shard(tmp_path: Path, batch: Batch) -> None:
    """The next shard begins with its own first row. It stores no position: that would leave the other rows out."""
    path = tmp_path / "taken"

    def two(rows: Any, part: Part) -> None:
        with path.open("a") as file:
            file.writelines(f"{row['sequenceNumber']} {part.shard}\n" for row in islice(rows, 2))

    foreach(batch(range(10)), info(1), two)
    assert path.read_text().split("\n")[:-1] == ["0 shardId-0", "2 shardId-0", "1 shardId-1", "3 shardId-1"]


def test_without_a_function_it_is_refused(spark: Any) -> None:
    with pytest.raises(Refused, match=r"pipeline\.args\.function: missing"):
        foreach.prepare(spark, {})
