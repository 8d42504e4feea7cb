"""What the consumers of these tests run; comes into their pods as the module `rules_pipeline`, by a ConfigMap.

The sink is a table, so that it is on no node. It is idempotent: what a batch holds stands under the consumer and the batch, whoever writes it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import boto3
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from sluice_consumer.pipelines import BatchInfo


def keep(batch: DataFrame, info: BatchInfo) -> None:
    """Keeps the numbers of a batch's records. `args.hold`: seconds that a task takes whose first record has a number up to `args.held` (any)."""
    held = batch.mapInArrow(partial(_hold, float(info.args.get("hold", 0)), info.args.get("held")), batch.schema)
    _store(_numbers(held), info)


def work(batch: DataFrame, info: BatchInfo) -> None:
    """Keeps as `keep` does. A task takes `args.work` seconds for each of its records, so more executors take less time."""
    _store(_numbers(batch.mapInArrow(partial(_work, float(info.args["work"])), batch.schema)), info)


def refuse(batch: DataFrame, info: BatchInfo) -> None:
    """Keeps as `keep` does. Raises on a batch with the number `args.poison` (none), and keeps nothing of it."""
    numbers, poison = _numbers(batch), info.args.get("poison")
    if poison in numbers:
        raise ValueError(f"record {poison} has no temperature")
    _store(numbers, info)


def hang(batch: DataFrame, info: BatchInfo) -> None:
    """Keeps as `keep` does, but a consumer's first driver never comes to it."""
    numbers = _numbers(batch)
    if numbers and os.environ["SLUICE_POD_NAME"].endswith("-driver-1"):
        threading.Event().wait()
    _store(numbers, info)


def die(batch: DataFrame, info: BatchInfo) -> None:
    """Keeps as `keep` does. In the pod of a pool, a batch with the number `args.fatal` ends the process, when the others have kept theirs."""
    numbers = _numbers(batch)
    if info.args["fatal"] in numbers and "-pool-" in os.environ["SLUICE_POD_NAME"]:
        threading.Event().wait(5)
        os._exit(1)
    _store(numbers, info)


def right(rows: DataFrame) -> DataFrame:
    return rows.withColumn("wrong", lit(0))


def wrong(rows: DataFrame) -> DataFrame:
    return rows.withColumn("wrong", lit(1))


def _numbers(batch: DataFrame) -> list[int]:
    return [json.loads(bytes(row.data))["n"] for row in batch.select("data").collect()]


def _store(numbers: list[int], info: BatchInfo) -> None:
    if numbers:
        row = {"numbers": numbers, "by": os.environ["SLUICE_POD_NAME"], "label": info.args.get("label"), "at": time.time()}
        item = {"id": {"S": f"{info.consumer}/{info.batch}"}, "row": {"S": json.dumps(row)}}
        _table(info).put_item(TableName=info.args["table"], Item=item)


def _hold(seconds: float, last: int | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches):
        if number == 0 and batch.num_rows and (last is None or _number(batch) <= last):
            time.sleep(seconds)
        yield batch


def _work(seconds: float, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(seconds * batch.num_rows)
        yield batch


def _number(batch: pa.RecordBatch) -> int:
    return int(json.loads(batch.column("data")[0].as_py())["n"])


def _table(info: BatchInfo) -> Any:
    return boto3.client("dynamodb", region_name="eu-west-1", endpoint_url=info.args["dynamodb"])
