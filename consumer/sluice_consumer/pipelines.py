"""Built-in pipelines: something to see, and something to keep.

A pipeline is `process(batch, info)`. It is a function of its batch alone, and lets failures of a read out. Its return says that the batch is dealt
with, read or not; whoever cannot deal with it now raises `NotNow` (docs/protocol.md, "What returning means").
"""

from __future__ import annotations

import contextlib
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused, SluiceError

ATOMIC = frozenset({"file", "hdfs", "ofs", "swebhdfs", "viewfs", "webhdfs"})  # schemes whose rename of a directory is one step


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

    Every attempt writes to a directory of its own and renames it. A target that is there is complete: it wins, and its batch is skipped without being
    read. Works on file systems whose rename is atomic (HDFS, local and network disks).

    Raises:
        Refused: `args.path` is missing, or lies on a file system whose rename is not atomic.
    """
    check_parquet(info.args)
    folder = Folder(batch.sparkSession, f"{info.args['path']}/{info.consumer}")
    name = f"{info.batch:012d}"
    if not folder.holds(name):
        staging = f"_{name}.{uuid.uuid4().hex}"
        batch.write.parquet(f"{folder.path}/{staging}")
        folder.publish(staging, name)
    folder.remove_stagings(name)


def check_parquet(args: Mapping[str, Any]) -> None:
    """Looks at the arguments of `parquet` before anything is started.

    Raises:
        Refused: see `parquet`.
    """
    path = args.get("path")
    if not path:
        raise Refused("pipeline.args.path: missing; the parquet pipeline needs a directory")
    scheme = urllib.parse.urlsplit(str(path)).scheme
    if scheme and scheme not in ATOMIC:
        raise Refused(
            f"pipeline.args.path: {path}: the rename of {scheme}:// is not atomic, and the parquet pipeline would lose records there. "
            f"Use a path on one of {', '.join(sorted(ATOMIC))}, or a pipeline of your own that writes to {scheme}://"
        )


parquet.check = check_parquet  # type: ignore[attr-defined]  # asked before table, lease and Spark (docs/interfaces.md)


class Folder:
    """A directory of batches on a Hadoop file system whose rename is atomic, over py4j.

    A batch's directory is complete from the moment that it has its name. Nobody deletes it.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm, context = spark._jvm, spark._jsc  # noqa: SLF001 - PySpark has no file system of its own
        assert jvm is not None  # noqa: S101 - classic Spark always has one
        self.path = path
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._system: JavaObject = self._path(path).getFileSystem(context.hadoopConfiguration())

    def holds(self, name: str) -> bool:
        """Whether a batch is there."""
        return bool(self._system.exists(self._at(name)))

    def publish(self, staging: str, name: str) -> None:
        """Gives a complete staging directory its batch's name, unless the batch is there.

        Hadoop moves a directory *into* a target that exists. The staging name is nobody else's and hidden, so the target stays complete even then.

        Raises:
            OSError: the batch is not there afterwards.
        """
        if not self.holds(name):
            with contextlib.suppress(Py4JJavaError):  # another attempt was faster, and removed what it took for a leftover
                self._system.rename(self._at(staging), self._at(name))
        if not self.holds(name):
            raise OSError(f"{self.path}/{staging} could not be renamed to {self.path}/{name}")
        self._system.delete(self._at(f"{name}/{staging}"), True)  # noqa: FBT003 - py4j has no keyword arguments

    def remove_stagings(self, name: str) -> None:
        """Deletes what attempts at a batch that is there have left. One that still writes cannot publish any more."""
        for status in self._system.globStatus(self._at(f"_{name}*")) or ():
            self._system.delete(status.getPath(), True)  # noqa: FBT003

    def _at(self, name: str) -> JavaObject:
        found: JavaObject = self._path(f"{self.path}/{name}")
        return found
