"""`foreach` into a real PostgreSQL, with the function of docs/sinks.md, "Databases": each record once, whatever dies."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from conftest_sinks import Batch, info
from postgres_pipelines import documented
from pyspark.sql import functions as f

from sluice_consumer.sinks import Part, foreach
from sluice_consumer.sinks.foreach import Function, calls
from sluice_lab.machine.processes import poll

pytestmark = pytest.mark.spark
SECONDS = 60.0
Sabotaged = Callable[[dict[str, Any], Any, Part], None]


def stored(database: str) -> dict[str, int]:
    with psycopg.connect(database) as reader:
        return dict(reader.execute("SELECT id, changes FROM orders").fetchall())


def once(*numbers: int) -> dict[str, int]:
    return {f"k{number}": 1 for number in numbers}


def rows(*numbers: int) -> Iterator[pa.RecordBatch]:
    made = [
        {"shardId": "s", "sequenceNumber": str(n), "subSequenceNumber": 0, "partitionKey": f"k{n}", "data": f'{{"id": {n}}}'.encode()}
        for n in numbers
    ]
    yield pa.RecordBatch.from_pylist(made)


def attempt(function: Function, database: str, read: Iterator[pa.RecordBatch] | None = None) -> int:
    """One attempt of a task at the part of orders 0 to 4; returns how many rows it counted."""
    counted = calls(function, ("c", 1), {"database": database})(read or rows(*range(5)))
    return sum(batch["rows"][0].as_py() for batch in counted)


def holding(reached: threading.Event, go_on: threading.Event, *, fails: bool = False) -> Iterator[pa.RecordBatch]:
    yield from rows(0, 1, 2)
    reached.set()
    assert go_on.wait(SECONDS)
    if fails:
        raise OSError("the stream is gone")
    yield from rows(3, 4)


def dies_once(function: Function, marker: Path) -> Function:
    """The function in a task whose process is killed when its rows are written and its transaction is open."""

    def run(part_rows: Any, part: Part) -> None:
        def then_dies() -> Iterator[dict[str, Any]]:
            yield from part_rows
            if part.shard == "shardId-1" and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        function(then_dies(), part)

    return run


def holds_each_record_once(function: Function, database: str, batch: Batch, marker: Path) -> None:
    """The claim: a task is killed in its transaction; the batch comes again, after its driver died, and then shortened."""
    with pytest.raises(Exception, match=r"Python worker exited unexpectedly|crashed"):
        foreach(batch(range(10)), info(1, database=database), dies_once(function, marker))
    for number, numbers in ((1, range(10)), (1, range(10)), (1, (0, 2)), (2, (1, *range(3, 10))), (3, range(10, 15)), (3, range(10, 15))):
        foreach(batch(numbers), info(number, database=database), function)
    assert stored(database) == once(*range(15))


@pytest.mark.slow
def test_each_record_is_stored_once_though_a_task_was_killed_and_batches_come_again(database: str, batch: Batch, tmp_path: Path) -> None:
    holds_each_record_once(documented()["upsert"], database, batch, tmp_path / "died")


def rows_committed_first(names: dict[str, Any], part_rows: Any, part: Part) -> None:
    """Stores rows again whose position did not follow."""
    with names["psycopg"].connect(part.args["database"], autocommit=True) as database:
        (stored,) = database.execute(names["LOCK"], (part.consumer, part.shard)).fetchone()
        for row in part.after(part_rows, stored):
            database.execute(names["UPSERT"], (row["partitionKey"], row["data"].decode()))
        database.execute(names["MOVE"], (part.position, part.consumer, part.shard))


def rows_without_a_position(names: dict[str, Any], part_rows: Any, part: Part) -> None:
    """Stores rows again whenever they come."""
    with names["psycopg"].connect(part.args["database"]) as database:
        database.cursor().executemany(names["UPSERT"], ((row["partitionKey"], row["data"].decode()) for row in part_rows))


def keyed_by_the_batch(names: dict[str, Any], part_rows: Any, part: Part) -> None:
    """Stores rows again that come under another number."""
    with names["psycopg"].connect(part.args["database"]) as database:
        found = "INSERT INTO positions VALUES (%s, %s, '') ON CONFLICT DO NOTHING"
        if database.execute(found, (part.consumer, f"{part.batch}/{part.shard}")).rowcount:
            database.cursor().executemany(names["UPSERT"], ((row["partitionKey"], row["data"].decode()) for row in part_rows))


@pytest.mark.slow
@pytest.mark.parametrize("sabotage", [rows_committed_first, rows_without_a_position, keyed_by_the_batch])
def test_a_position_that_is_not_in_the_rows_transaction_is_caught(sabotage: Sabotaged, database: str, batch: Batch, tmp_path: Path) -> None:
    names = {name: value for name, value in documented().items() if name in ("psycopg", "LOCK", "MOVE", "UPSERT")}
    with pytest.raises(AssertionError):
        holds_each_record_once(lambda part_rows, part: sabotage(names, part_rows, part), database, batch, tmp_path / "died")


def test_a_later_record_of_a_key_replaces_the_earlier_one(database: str, batch: Batch) -> None:
    for number in (1, 2):
        rows = batch(range(4)).withColumn("sequenceNumber", (f.col("sequenceNumber") + 10 * number).cast("bigint").cast("string"))
        foreach(rows, info(number, database=database), documented()["upsert"])
    assert stored(database) == {f"k{number}": 2 for number in range(4)}


def test_a_function_that_raises_in_the_middle_stores_nothing_of_that_part(database: str) -> None:
    reached, go_on = threading.Event(), threading.Event()
    go_on.set()
    with pytest.raises(OSError, match="the stream is gone"):
        attempt(documented()["upsert"], database, holding(reached, go_on, fails=True))
    assert reached.is_set()
    assert stored(database) == {}
    assert attempt(documented()["upsert"], database) == 5
    assert stored(database) == once(*range(5))


@pytest.mark.parametrize("first_fails", [False, True])
def test_of_two_attempts_at_the_same_time_one_stores_the_part(database: str, *, first_fails: bool) -> None:
    """The second waits at the lock. It stores nothing if the first one committed, and all if that failed."""
    reached, go_on = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as tasks:
        first = tasks.submit(attempt, documented()["upsert"], database, holding(reached, go_on, fails=first_fails))
        assert reached.wait(SECONDS)
        second = tasks.submit(attempt, documented()["upsert"], database)
        assert poll(lambda: waiting(database), SECONDS)
        assert stored(database) == {}
        go_on.set()
        assert second.result(SECONDS) == 5
        assert isinstance(first.exception(SECONDS), OSError) is first_fails
    assert stored(database) == once(*range(5))


def waiting(database: str) -> bool:
    with psycopg.connect(database) as reader:
        found = reader.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").fetchone()
        return found == (1,)
