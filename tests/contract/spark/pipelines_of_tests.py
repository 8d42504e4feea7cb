"""Pipelines that do what users do. They leave what they saw in `seen`."""

from __future__ import annotations

import threading
import time
from typing import Any

from pyspark.sql import DataFrame

seen: list[Any] = []


def collect(batch: DataFrame, info: Any) -> None:
    """Reads everything once."""
    seen.append((info.batch, sorted(int(row.data) for row in batch.select("data").collect())))


def twice(batch: DataFrame, info: Any) -> None:
    """Two actions on the same frame, and a union with itself."""
    seen.append((batch.count(), batch.count(), batch.union(batch).count()))
    collect(batch, info)


def nothing(_batch: DataFrame, _info: Any) -> None:
    """Does not read at all."""


def a_look(batch: DataFrame, _info: Any) -> None:
    """Reads a part only."""
    seen.append(len(batch.limit(1).collect()))


def _failing(rows: Any) -> Any:
    for _ in rows:
        raise ValueError("a task fails")
    yield from ()


def swallow(batch: DataFrame, _info: Any) -> None:
    """Catches a failed job, as a user's code may."""
    try:
        batch.rdd.mapPartitions(_failing).collect()
    except Exception as error:  # noqa: BLE001 - what this pipeline is about
        seen.append(type(error).__name__)


def _slow(rows: Any) -> Any:
    list(rows)
    time.sleep(1.5)
    yield 1


def leave_running(batch: DataFrame, _info: Any) -> None:
    """Returns while a job of a thread of its own still runs."""
    thread = threading.Thread(target=lambda: seen.append(batch.rdd.mapPartitions(_slow).collect()), daemon=True)
    thread.start()
    tracker = batch.sparkSession.sparkContext.statusTracker()
    while not tracker.getActiveJobsIds():
        threading.Event().wait(0.02)
    seen.append(thread)


def fail(batch: DataFrame, _info: Any) -> None:
    """Reads, then raises."""
    batch.count()
    raise RuntimeError("the sink is full")


def _minute(rows: Any) -> Any:
    list(rows)
    time.sleep(60)
    yield 1


def long_job(batch: DataFrame, info: Any) -> None:
    """Waits for a job of a minute."""
    seen.append(info.batch)
    batch.rdd.mapPartitions(_minute).collect()
