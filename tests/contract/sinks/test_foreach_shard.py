"""The sink `foreach`: one call for each shard of a batch, its rows in order."""

from __future__ import annotations

import sqlite3
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from conftest_sinks import Batch, info

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import Part, foreach

pytestmark = pytest.mark.spark


def upsert(path: str, rows: Any, part: Part, *, fail_after: int | None = None) -> None:
    """Rows and the part's key in one transaction."""
    with sqlite3.connect(path, timeout=60) as database:
        database.execute("CREATE TABLE IF NOT EXISTS parts (consumer, batch, shard, PRIMARY KEY (consumer, batch, shard))")
        database.execute("CREATE TABLE IF NOT EXISTS orders (sequence, shard)")
        if database.execute("INSERT OR IGNORE INTO parts VALUES (?, ?, ?)", (part.consumer, part.batch, part.shard)).rowcount == 0:
            return
        for number, row in enumerate(rows):
            if number == fail_after:
                raise OSError("the database is gone")
            database.execute("INSERT INTO orders VALUES (?, ?)", (row["sequenceNumber"], part.shard))


def stored(path: str) -> list[tuple[str, str]]:
    """In the order of their coming."""
    with sqlite3.connect(path) as database:
        return database.execute("SELECT sequence, shard FROM orders ORDER BY rowid").fetchall()


@pytest.mark.slow
def test_each_shards_rows_come_in_order_and_a_part_that_comes_again_is_skipped(tmp_path: Path, batch: Batch) -> None:
    """The key is stored with the rows."""
    path = str(tmp_path / "orders.db")
    for _ in range(2):
        foreach(batch(range(10)), info(1), lambda rows, part: upsert(path, rows, part))
    assert stored(path) == [(str(n), f"shardId-{n % 2}") for n in (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)]


@pytest.mark.slow
def test_a_failure_keeps_whole_parts_only(tmp_path: Path, batch: Batch) -> None:
    """And the batch fails, so that it comes again."""
    path = str(tmp_path / "orders.db")

    def fails(rows: Any, part: Part) -> None:
        upsert(path, rows, part, fail_after=3 if part.shard == "shardId-1" else None)

    with pytest.raises(Exception, match="the database is gone"):
        foreach(batch(range(10)), info(1), fails)
    assert {shard for _, shard in stored(path)} == {"shardId-0"}
    foreach(batch(range(10)), info(1), lambda rows, part: upsert(path, rows, part))
    assert sorted(int(sequence) for sequence, _ in stored(path)) == list(range(10))


def test_a_function_may_have_enough_of_a_shard(tmp_path: Path, batch: Batch) -> None:
    """The next shard begins with its own first row."""
    path = str(tmp_path / "orders.db")
    foreach(batch(range(10)), info(1), lambda rows, part: upsert(path, islice(rows, 2), part))
    assert stored(path) == [("0", "shardId-0"), ("2", "shardId-0"), ("1", "shardId-1"), ("3", "shardId-1")]


def test_without_a_function_it_is_refused(spark: Any) -> None:
    """Before the first batch."""
    with pytest.raises(Refused, match=r"pipeline\.args\.function: missing"):
        foreach.prepare(spark, {})
