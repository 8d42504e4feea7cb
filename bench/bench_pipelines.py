"""What the consumer is asked to do with its batches, and what it leaves in the file BENCH_MARKS: a line of JSON a batch."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from process_tree import cpu_by_kind

EVERY = 5  # batches from one look at the process tree to the next: looking costs milliseconds


def noop(batch: Any, info: Any) -> None:
    batch.write.format("noop").mode("overwrite").save()
    if info.batch % EVERY == 0:
        mark(batch=info.batch, at=time.monotonic(), **cpu_by_kind(os.getppid()))


def nothing_more(batch: Any, info: Any) -> None:  # noqa: ARG001 - as Sluice calls it
    batch.write.format("noop").mode("overwrite").save()


def lake(batch: Any, info: Any) -> None:
    from sluice_consumer import sinks  # noqa: PLC0415 - only where a lake is

    getattr(sinks, info.args["sink"])(batch, info, **info.args["into"])
    mark(batch=info.batch, at=time.monotonic(), **cpu_by_kind(os.getppid()))


def sink(batch: Any, info: Any) -> None:
    """Brings the batch here, and says how long ago its records were put."""
    arrived = batch.select("approximateArrivalTimestamp").toArrow().column(0).cast("int64").to_pylist()
    now = time.time()
    mark(batch=info.batch, waited=[now - micros / 1e6 for micros in arrived])


def noted(batch: Any, info: Any) -> None:
    """Notes what it was handed (`compare_log`), and does not return while the file `hold` exists: a kill is then in the middle of a batch."""
    found = batch.select("shardId", "sequenceNumber").toArrow()
    hold, records = Path(info.args["hold"]), dict[str, list[str]]()
    for shard, sequence in zip(*(column.to_pylist() for column in found.columns), strict=True):
        records.setdefault(shard, []).append(sequence)
    unit = {"unit": info.batch, "at": time.time(), "held": hold.exists(), "records": records}
    with Path(info.args["notes"]).open("a") as out:
        out.write(json.dumps(unit) + "\n")
    while unit["held"] and hold.exists():
        time.sleep(0.02)


def mark(**values: Any) -> None:
    with Path(os.environ["BENCH_MARKS"]).open("a") as out:
        out.write(json.dumps(values) + "\n")
