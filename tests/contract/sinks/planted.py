"""Pipelines that lose or double records when they are killed, each in its way; and two that do not. Tasks import this module by its name."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import Part, foreach

DONE = set[int]()


def append(batch: DataFrame, info: BatchInfo) -> None:
    batch.write.mode("append").parquet(info.args["path"])


def marker_first(batch: DataFrame, info: BatchInfo) -> None:
    """The marker says that the batch is there before it is."""
    marker = _marker(info)
    if marker.exists():
        return
    marker.write_text("done")
    append(batch, info)


def look_then_append(batch: DataFrame, info: BatchInfo) -> None:
    """The marker is written after the rows: a kill in between makes the replay write them again."""
    marker = _marker(info)
    if not marker.exists():
        append(batch, info)
        marker.touch()


def locks(batch: DataFrame, info: BatchInfo) -> None:
    """Takes its lock away in `finally`, which a process that was killed does not reach."""
    lock = _marker(info)
    if lock.exists():
        return
    lock.touch()
    try:
        overwrites(batch, info)
    finally:
        lock.unlink()


def remembers(batch: DataFrame, info: BatchInfo) -> None:
    """What it has done dies with its process."""
    if info.batch not in DONE:
        append(batch, info)
    DONE.add(info.batch)


def refuses_what_is_there(batch: DataFrame, info: BatchInfo) -> None:
    """The batch comes again for ever."""
    batch.write.mode("error").parquet(f"{info.args['path']}/{info.batch}")


def overwrites(batch: DataFrame, info: BatchInfo) -> None:
    """A folder of the batch's own: right."""
    batch.write.mode("overwrite").parquet(f"{info.args['path']}/{info.consumer}-{info.batch}")


def swallows(batch: DataFrame, info: BatchInfo) -> None:
    with contextlib.suppress(Exception):
        overwrites(batch, info)


def inserts_from_the_driver(batch: DataFrame, info: BatchInfo) -> None:
    """No key, and nothing that Spark or Python's files would show."""
    insert(info.args["path"], [(row.sequenceNumber,) for row in batch.collect()])


def insert(path: str, rows: list[tuple[str]]) -> None:
    with database(path) as made:
        made.executemany("INSERT INTO orders VALUES (?)", rows)


def without_a_key(batch: DataFrame, info: BatchInfo) -> None:
    """Of a shard that comes again, each row is inserted again."""
    foreach(batch, info, insert_part)


def insert_part(rows: Iterable[dict[str, Any]], part: Part) -> None:
    with database(part.args["path"]) as made:
        made.executemany("INSERT INTO orders VALUES (?)", ((row["sequenceNumber"],) for row in rows))


def row_by_row(batch: DataFrame, info: BatchInfo) -> None:
    """`foreachPartition` of Spark's own; each row is a transaction."""
    path = info.args["path"]

    def send(rows: Iterable[Any]) -> None:
        for row in rows:
            insert(path, [(row.sequenceNumber,)])

    batch.foreachPartition(send)


def keyed_by_the_batch(batch: DataFrame, info: BatchInfo) -> None:
    """The key of each part is made of the batch: right, until a batch is shortened."""
    foreach(batch, info, keyed_part)


def keyed_part(rows: Iterable[dict[str, Any]], part: Part) -> None:
    with database(part.args["path"]) as made:
        if made.execute("INSERT OR IGNORE INTO parts VALUES (?, '')", (f"{part.consumer}/{part.batch}/{part.shard}",)).rowcount:
            made.executemany("INSERT INTO orders VALUES (?)", ((row["sequenceNumber"],) for row in rows))


def upserts(batch: DataFrame, info: BatchInfo) -> None:
    """The position of each part, with its rows: right."""
    foreach(batch, info, upsert_part)


def upsert_part(rows: Any, part: Part) -> None:
    with database(part.args["path"]) as made:
        made.execute("INSERT OR IGNORE INTO parts VALUES (?, '')", (part.shard,))
        ((stored,),) = made.execute("SELECT position FROM parts WHERE key = ?", (part.shard,)).fetchall()
        made.executemany("INSERT INTO orders VALUES (?)", ((row["sequenceNumber"],) for row in part.after(rows, stored)))
        made.execute("UPDATE parts SET position = ? WHERE key = ?", (part.position, part.shard))


def database(path: str) -> sqlite3.Connection:
    made = sqlite3.connect(path, timeout=60)
    made.execute("CREATE TABLE IF NOT EXISTS orders (sequence)")
    made.execute("CREATE TABLE IF NOT EXISTS parts (key PRIMARY KEY, position)")
    made.commit()
    return made


def _marker(info: BatchInfo) -> Path:
    return Path(f"{info.args['path']}.{info.consumer}-{info.batch}")
