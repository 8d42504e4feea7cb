"""Built-in pipelines: something to see, and something to keep.

A pipeline is `process(batch, info)`. It is a function of its batch alone, and lets failures of a read out. Its return says that the batch is dealt
with, read or not; whoever cannot deal with it now raises `NotNow` (docs/protocol.md, "What returning means").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused, SluiceError


class NotNow(SluiceError):
    """`process` cannot deal with this batch now: nothing is committed, the life ends, and the next one is given the batch with the same content.

    To be raised by a pipeline whose sink is down, in maintenance or behind an open circuit breaker. Unlike other exceptions it does not count as a
    failure of the driver (exit code 75).
    """

    exit_code = 75


@dataclass(frozen=True)
class BatchInfo:
    """What a pipeline is told beside its rows.

    Attributes:
        consumer: the table's `consumerId`; with `batch` it is the idempotency key. The number alone is not: it begins at 1 in every table.
        batch: number of this micro-batch over the consumer's whole life.
        replay: an earlier life had begun this batch; its content is the same.
        stream: name of the stream.
        shards: ids of the shards in it.
        args: `pipeline.args` of the resource.
    """

    consumer: str
    batch: int
    replay: bool
    stream: str
    shards: tuple[str, ...]
    args: Mapping[str, Any] = field(default_factory=dict)


def console(batch: DataFrame, info: BatchInfo) -> None:
    """Prints the first rows of every batch to the driver's log. `args.rows`: how many (20)."""
    rows = int(info.args.get("rows", 20))
    found = batch.selectExpr("shardId", "sequenceNumber", "subSequenceNumber", "partitionKey", "decode(data, 'UTF-8') AS data").collect()
    print(f"-- batch {info.batch} of {info.consumer}: {len(found)} records", flush=True)  # noqa: T201 - what this pipeline is for
    for row in found[:rows]:
        print("   " + "  ".join(str(value) for value in row), flush=True)  # noqa: T201


def parquet(batch: DataFrame, info: BatchInfo) -> None:
    """Writes each batch to `<args.path>/<consumer>/<batch>`, once.

    The directory is written under another name and renamed, and a batch whose directory is there is skipped without being read: a batch that comes
    again changes nothing. Works on any file system whose rename is atomic (HDFS, local and network disks).

    Raises:
        Refused: `args.path` is missing.
    """
    path = info.args.get("path")
    if not path:
        raise Refused("pipeline.args.path: missing; the parquet pipeline needs a directory")
    target, written = f"{path}/{info.consumer}/{info.batch:012d}", f"{path}/{info.consumer}/_{info.batch:012d}"
    files = _Files(batch.sparkSession, target)
    if files.exists(target):
        return
    batch.write.mode("overwrite").parquet(written)
    files.rename(written, target)


class _Files:
    """Hadoop's file system at a path, over py4j."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm, context = spark._jvm, spark._jsc  # noqa: SLF001 - PySpark has no file system of its own
        assert jvm is not None  # noqa: S101 - classic Spark always has one
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._system: JavaObject = self._path(path).getFileSystem(context.hadoopConfiguration())

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def rename(self, source: str, target: str) -> None:
        if not self._system.rename(self._path(source), self._path(target)):
            raise OSError(f"{source} could not be renamed to {target}")
