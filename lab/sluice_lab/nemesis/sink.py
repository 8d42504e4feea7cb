"""The pipeline of the nemesis. A ConfigMap mounts it in the consumer's pods as the module `nemesis_sink`.

It writes two sinks. One is idempotent: a sink of Sluice's on S3 (`args.sink`), or its Parquet files in a folder of the node, `stored/`.
The other, `seen/` in that folder, is not. For each piece of a shard every task attempt appends a line with the time, before it hands the piece on.
All pods are on one machine and read one clock.
"""

import itertools
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, functions

from sluice_consumer import sinks
from sluice_consumer.pipelines import BatchInfo

PIECES = 4  # of one shard's records in one batch
COLUMNS = ("data", "shardId", "sequenceNumber", "subSequenceNumber")  # that a table of the lake gets, beside `batch`
PACE = "pace"  # a file with the seconds that a piece takes
DOWN = "down"  # a file that is there while the sink is down
HANG = "hang"  # a file that is there while no task ends
HANG_POLL = 0.2  # seconds


@dataclass(frozen=True)
class Origin:
    """A batch of an epoch."""

    epoch: str
    batch: int


def process(batch: DataFrame, info: BatchInfo) -> None:
    """Append a line for every piece to `seen/`, and store every record in the idempotent sink."""
    home, origin = Path(info.args["home"]), Origin(os.environ["SLUICE_POD_NAME"], info.batch)
    log = home / "seen" / f"{origin.epoch}.driver.jsonl"
    _append(log, asdict(origin) | {"invoked": time.time(), "began": began()})
    if info.args.get("poison"):
        _refuse(batch, home)
    seen = batch.mapInArrow(partial(_record, home, origin), batch.schema)
    if name := info.args.get("sink"):
        rows = seen.select(*COLUMNS, functions.lit(info.batch).cast("long").alias("batch"))
        getattr(sinks, name)(rows, info, **info.args["into"])
    else:
        sinks.parquet(seen, info, path=f"file://{home}/stored")


def _refuse(batch: DataFrame, home: Path) -> None:
    """By one error for a record and for a sink that is down: only what happens next distinguishes them."""
    bad = batch.filter(functions.decode("data", "UTF-8").startswith("poison"))
    if (home / DOWN).exists() or not bad.isEmpty():
        raise ValueError("the sink does not take this batch")


def began() -> float:
    """When this container's first process began."""
    ticks = int(Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")


def _record(home: Path, origin: Origin, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None  # noqa: S101 - runs in tasks only
    pod = os.environ.get("SPARK_EXECUTOR_POD_NAME", "none")  # there is none if Spark runs in one process
    log = home / "seen" / f"{origin.epoch}.{pod}.{os.getpid()}.jsonl"
    who = asdict(origin) | {"pod": pod, "task": f"{context.stageId()}.{context.partitionId()}", "attempt": context.taskAttemptId()}
    for batch in batches:
        for shard, piece in pieces(batch):
            pace = float((home / PACE).read_text() or 0)
            _append(log, who | {"at": time.time(), "shard": shard, "positions": positions(piece)})
            time.sleep(pace)
            while (home / HANG).exists():
                time.sleep(HANG_POLL)
            _append(log, who | {"at": time.time(), "shard": shard, "positions": []})
        yield batch


def pieces(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Each shard's records in a batch, in order, in up to `PIECES` pieces."""
    start = 0
    for shard, run in itertools.groupby(batch.column("shardId").to_pylist()):
        count = len(list(run))
        size = -(-count // PIECES)
        yield from ((shard, batch.slice(start + at, min(size, count - at))) for at in range(0, count, size))
        start += count


def positions(piece: pa.RecordBatch) -> list[list[Any]]:
    """The position of each record: sequence number, and index in an aggregate."""
    columns = (piece.column(name).to_pylist() for name in ("sequenceNumber", "subSequenceNumber"))
    return [list(position) for position in zip(*columns, strict=True)]


def _append(path: Path, line: dict[str, Any]) -> None:
    """Append one line in one write: a killed process has written all of it or nothing."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)
