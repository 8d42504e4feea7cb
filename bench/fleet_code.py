"""What the consumers of `pool_fleet` run; comes into their pods as the module `fleet_code`, by a ConfigMap.

Each call appends a line to a file of its consumer, in a folder of the node. The last line of a batch counts, as in a sink that is idempotent by
batch.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from sluice_consumer.pipelines import BatchInfo


def keep(batch: DataFrame, info: BatchInfo) -> None:
    """Keeps the numbers of a batch's records. `args.hang`: a file; while it is there, tasks do not end. Raises on poison, and keeps nothing."""
    if "hang" in info.args:
        batch = batch.mapInArrow(partial(_hang, info.args["hang"]), batch.schema)
    found = [bytes(row.data) for row in batch.select("data").collect()]
    if any(data.startswith(b"poison") for data in found):
        raise ValueError("a record has no number")
    line = {"batch": info.batch, "at": time.time(), "by": os.environ["SLUICE_POD_NAME"], "numbers": [json.loads(data)["n"] for data in found]}
    file = os.open(info.args["file"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")  # in one write: a killed process has written all of it, or nothing
    finally:
        os.close(file)


def _hang(flag: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        while batch.num_rows and Path(flag).exists():
            time.sleep(0.2)
        yield batch
