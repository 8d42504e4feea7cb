"""Pipelines that cannot deal with some records: an idempotent sink of one file a batch, and a log of every run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from sluice_consumer.poison.search import DoubtLimits

POISON = b"poison"
KILLS, SURROGATE, QUOTES = "0", "3", "5"  # shards, of the records that do so in a task
OUTAGE = "status 'cancelled'\nTimeout: Connection refused\nsluice_checkpoints.errors.Fenced: 3\nCaused by: java.net.SocketTimeoutException: x"


def hasty(process: Any) -> Any:
    """A pipeline in whose driver a doubt takes seconds; simulation and tests of the search have the minutes (docs/protocol.md, "Poison")."""

    def prepare(_spark: Any, _args: Any) -> None:
        from sluice_consumer.process import poison_ports  # noqa: PLC0415 - of the driver, and no worker's

        poison_ports.PATIENCE = DoubtLimits(data=3, unknown=8, nothing=6, refused=60)

    process.prepare = prepare
    return process


def _store(info: Any, rows: list[Any]) -> None:
    """One file a batch, whole, and only if there is none."""
    target = Path(info.args["path"]) / f"{info.consumer}-{info.batch:09d}.jsonl"
    aside = target.with_suffix(f".{os.getpid()}")
    aside.write_text("".join(f"{json.dumps([row.shardId, row.sequenceNumber, row.subSequenceNumber, row.data.decode()])}\n" for row in rows))
    if target.exists():
        aside.unlink()
    else:
        aside.rename(target)


def _ran(info: Any, rows: Iterable[Any]) -> None:
    with (Path(info.args["path"]) / "runs").open("a") as log:
        log.write(json.dumps([info.batch, sorted(bytes(row.data).decode() for row in rows if bytes(row.data).startswith(POISON))]) + "\n")


@hasty
def in_driver(batch: DataFrame, info: Any) -> None:
    rows = batch.collect()
    _ran(info, rows)
    for row in rows:
        if bytes(row.data).startswith(POISON):
            raise ValueError(f"cannot deal with {bytes(row.data).decode()}")
    _store(info, rows)


def _checked(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        if bytes(row.data).startswith(POISON):
            raise ValueError(f"cannot deal with {bytes(row.data).decode()}")
        yield row


@hasty
def in_tasks(batch: DataFrame, info: Any) -> None:
    _store(info, batch.rdd.mapPartitions(_checked).collect())


def _survived(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        data = bytes(row.data).decode()
        if data.startswith(f"poison {KILLS}/"):
            os._exit(3)
        if data.startswith(f"poison {SURROGATE}/"):
            raise ValueError(f"{data}: \ud800")
        if data.startswith(f"poison {QUOTES}/"):
            raise KeyError(f"{data}: {OUTAGE}")
        yield row


@hasty
def in_workers(batch: DataFrame, info: Any) -> None:
    """Some records kill their Python worker, some raise what has no UTF-8 form, or what looks like an outage."""
    _store(info, batch.rdd.mapPartitions(_survived).collect())


def rejecting(batch: DataFrame, info: Any) -> None:
    """Sorts bad rows out itself, and fails once after that: the replay rejects them again."""
    bad = batch.filter("decode(data, 'UTF-8') LIKE 'poison%'")
    rejected = info.reject(bad, "looks poisonous")
    mark = Path(info.args["path"]) / "failed"
    if rejected and not mark.exists():
        mark.touch()
        raise RuntimeError("once")
    _store(info, [row for row in batch.collect() if not bytes(row.data).startswith(POISON)])


def rejecting_while_down(batch: DataFrame, info: Any) -> None:
    info.reject(batch.filter("decode(data, 'UTF-8') LIKE 'poison%'"), "looks poisonous")
    raise RuntimeError("the sink is down")


def rejecting_and_dying(batch: DataFrame, info: Any) -> None:
    if info.reject(batch.filter("decode(data, 'UTF-8') LIKE 'poison%'"), "looks poisonous"):
        _store(info, [row for row in batch.collect() if not bytes(row.data).startswith(POISON)])
        os._exit(9)


def storing(batch: DataFrame, info: Any) -> None:
    _store(info, batch.collect())


@hasty
def while_down(batch: DataFrame, info: Any) -> None:
    """Its sink is down for the first calls: a file counts them down."""
    left = Path(info.args["path"]) / "down"
    calls = int(left.read_text())
    rows = batch.collect()
    if calls and rows:
        left.write_text(str(calls - 1))
        raise RuntimeError("the sink says no")
    _store(info, rows)
