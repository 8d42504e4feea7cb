"""Pipelines that do not end: each hangs somewhere else."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Any

from poison_pipelines import POISON, in_driver
from pyspark import InheritableThread
from pyspark.sql import DataFrame


def in_python(_batch: DataFrame, _info: Any) -> None:
    while True:
        time.sleep(3600)


def in_jvm(batch: DataFrame, _info: Any) -> None:
    jvm: Any = batch.sparkSession._jvm
    jvm.java.lang.Thread.sleep(3_600_000)


def in_socket(_batch: DataFrame, _info: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as there:
        there.recv(1)


def _stopped(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        os.kill(os.getpid(), signal.SIGSTOP)
        yield row


def in_stopped_worker(batch: DataFrame, _info: Any) -> None:
    batch.rdd.mapPartitions(_stopped).collect()


def _asleep(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        time.sleep(3600)
        yield row


def beside_a_failure(batch: DataFrame, info: Any) -> None:
    """In a job of another thread, while the function raises on a record; without that record it stores the batch."""
    rows = batch.collect()
    if any(bytes(row.data).startswith(POISON) for row in rows):
        InheritableThread(target=lambda: batch.rdd.mapPartitions(_asleep).collect(), daemon=True).start()
        jobs = batch.sparkSession.sparkContext.statusTracker()
        while not jobs.getActiveJobsIds():
            time.sleep(0.05)
        raise ValueError("unknown status")
    in_driver(batch, info)


def leaving(batch: DataFrame, _info: Any) -> None:
    """Not at all: it ends its process with the exit status of a clean drain."""
    batch.collect()
    os._exit(0)


def moving(batch: DataFrame, info: Any) -> None:
    """Not at all: one job a second goes on, and the batch ends after some of them."""
    batch.collect()
    for _ in range(int(info.args["jobs"])):
        time.sleep(1)
        batch.sparkSession.range(1).count()
    in_driver(batch, info)


def on_poison(batch: DataFrame, info: Any) -> None:
    if any(bytes(row.data).startswith(POISON) for row in batch.collect()):
        time.sleep(3600)
    in_driver(batch, info)
