"""A streaming query as a program of its own, which kills all of its processes at a moment that its order names.

`python streaming_app.py <order>`: JSON with `config`, `directory`, `sink` and `die`, a moment or null. Its checkpoint, its sink and a file for every
death are in the directory; it dies of a moment once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer import config as configs
from sluice_consumer.spark import conf
from sluice_consumer.spark.data_source import SluiceDataSource
from sluice_consumer.spark.stream_reader import StreamReader, from_options
from sluice_consumer.streaming import stream_source as streaming
from sluice_consumer.streaming.planner import StreamPlanner

ORDER = "SLUICE_TEST_ORDER"
ROW = "shardId string, sequenceNumber string, data binary"


def die(moment: str) -> None:
    """Ends every process of this session (JVM, planner, workers), if this is the moment and it is the first time."""
    order = json.loads(os.environ[ORDER])
    if order["die"] != moment:
        return
    try:
        Path(order["directory"], f"died-{moment}").touch(exist_ok=False)
    except FileExistsError:
        return
    session = os.getsid(0)
    others = (int(path.name) for path in Path("/proc").glob("[0-9]*") if int(path.name) != os.getpid())
    for pid in [pid for pid in others if _session(pid) == session]:
        os.kill(pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1


class DyingReader(StreamReader):
    def read(self, partition: InputPartition) -> Iterator[Any]:
        rows = list(super().read(partition))
        die("bound")
        return iter(rows)


class DyingSource(SluiceDataSource):
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's
        return DyingReader(from_options(self.options)._address)


def dying(call: Callable[..., Any], before: str, after: str, *, second: bool = False) -> Callable[..., Any]:
    """The call, with moments around it; with `second` only from its second time on."""
    count = iter([second, *[False] * 1000])

    def called(*values: Any) -> Any:
        early = next(count)
        if not early:
            die(before)
        result = call(*values)
        if not early:
            die(after)
        return result

    return called


def in_the_sink(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        yield batch
        die("sink")


def counts(directory: Path) -> Callable[[DataFrame, int], None]:
    def write(batch: DataFrame, number: int) -> None:
        found = json.dumps(sorted(map(tuple, batch.collect())))
        path = directory / "sink" / str(number)
        path.parent.mkdir(exist_ok=True)
        if path.exists() and path.read_text() != found:
            (directory / "another-content").write_text(f"{number}: {path.read_text()} / {found}")
        written = path.with_suffix(".part")
        written.write_text(found)
        written.rename(path)
        die("wrote")

    return write


def query(source: streaming.Source, directory: Path, sink: str) -> Any:
    stream = source.load()
    if sink == "files":
        rows = stream.selectExpr("shardId", "sequenceNumber", "data").mapInArrow(in_the_sink, ROW)
        writer = rows.writeStream.format("parquet").option("path", str(directory / "sink"))
    else:
        grouped = stream.groupBy("shardId").agg(F.count("*"), F.sum(F.expr("cast(decode(data, 'UTF-8') as bigint)")))
        writer = grouped.writeStream.outputMode("complete").foreachBatch(counts(directory))
    return writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True)


def main(order: dict[str, Any]) -> None:
    directory, config = Path(order["directory"]), configs.parse(json.dumps(order["config"]))
    streaming.SluiceDataSource = DyingSource  # type: ignore[misc, attr-defined]
    StreamPlanner.latest = dying(StreamPlanner.latest, "-", "latest", second=True)  # type: ignore[method-assign]
    CheckpointStore.commit = dying(CheckpointStore.commit, "committing", "committed", second=True)  # type: ignore[method-assign]
    settings = conf.settings(config, None, "local[2]") | {"spark.log.level": "OFF"}
    spark = SparkSession.builder.config(map=dict[str, Any](settings)).getOrCreate()
    with streaming.source(spark, config) as source:
        source.start(query(source, directory, order["sink"])).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    sys.modules["streaming_app"] = sys.modules["__main__"]
    main(json.loads(os.environ[ORDER]))
