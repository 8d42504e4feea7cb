"""Queries that people write into `process`, in groups. One batch runs a group, one query after the other.

What Spark 4.3.0 shows here, with adaptive execution on (its default):

* A join one side of which turns out empty ends its query at once. The job of the other side goes on; Spark neither waits for it nor cancels it. So
  `process` returns while a job of its query is RUNNING, and the query says COMPLETED.
* Where the batch is that other side, the job binds shards after `process` has returned.
* Such a job may also fail afterwards. Its query still says COMPLETED.
* A query says how it ended a moment after its action returned, and after its jobs' ends were reported.
* `toLocalIterator` says COMPLETED at once; its jobs begin afterwards, one for a partition, and carry the query's number.
* `take`, `limit` and `isEmpty` end a task when they have enough; its Python worker may go on, and bind, for a moment.

With adaptive execution off no job outlives its action.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pipelines_of_tests import running, seen
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

Query = Callable[[DataFrame, Path], Any]
# Longer than an empty batch is read for, so that a query can end while a dimension is read. Spark's workers import it, and not patience.py.
SLOW_SECONDS = 0.8 * float(os.environ.get("SLUICE_SLOW", "1"))
ADAPTIVE = "spark.sql.adaptive.enabled"
KINDS = ("inner", "left", "right", "full", "semi", "anti")
KEY = "partitionKey"


def out(rows: DataFrame) -> None:
    """Writes to nowhere, as a sink that reads every row; `seen` gets the number of jobs that outlive it."""
    rows.write.format("noop").mode("overwrite").save()
    seen.append(running(rows))


def late(rows: Iterable[Any]) -> Iterator[Any]:
    time.sleep(SLOW_SECONDS)
    yield from rows


def slow(rows: DataFrame) -> DataFrame:
    """The rows, after a while; at once where no query could end before them."""
    return rows.mapInArrow(late, rows.schema) if rows.sparkSession.conf.get(ADAPTIVE) == "true" else rows


def dimension(batch: DataFrame, *, rows: int = 3) -> DataFrame:
    """A slow table of keys and values; its size is known only when it was read."""
    keys = batch.sparkSession.range(0, max(rows, 1), 1, 1).selectExpr("concat('k', id) AS partitionKey", "id AS value")
    return slow(keys).filter(F.col("value") < rows)


def joined(kind: str, hint: str, *, rows: int = 3) -> Query:
    """The batch and a slow dimension, of which Spark does not know that it is small."""
    return lambda batch, _: out(batch.join(dimension(batch, rows=rows).hint(hint), KEY, kind))


def turned(kind: str, hint: str) -> Query:
    """A dimension of three rows or none, and the batch as the slow side, which is built or sorted."""
    return lambda batch, _: out(dimension(batch, rows=0).join(slow(batch).hint(hint), KEY, kind))


def cached(batch: DataFrame, _: Path) -> None:
    rows = batch.cache()
    assert rows.count() == rows.select(KEY).count()
    out(rows)
    rows.unpersist()


def files(batch: DataFrame, path: Path) -> None:
    number = batch.count()
    written = batch.repartition(2, "shardId").sortWithinPartitions("sequenceNumber")
    written.write.mode("overwrite").partitionBy("shardId").parquet(str(path))
    if number:
        assert batch.sparkSession.read.parquet(str(path)).count() == number


def windows(batch: DataFrame, _: Path) -> None:
    newest = Window.partitionBy(KEY).orderBy(F.desc("sequenceNumber"))
    out(batch.withColumn("n", F.row_number().over(newest)).filter("n = 1"))


def iterated(batch: DataFrame, _: Path) -> None:
    assert len(list(batch.toLocalIterator(prefetchPartitions=True))) == batch.count()


def counted(batch: DataFrame, _: Path) -> None:
    grouped = batch.groupBy(KEY).agg(F.count("*").alias("n"), F.collect_list("data"))
    total = grouped.agg(F.sum("n")).collect()[0][0] or 0
    assert total == batch.count() == len(batch.collect()) == batch.union(batch).count() / 2 == len(batch.toPandas())
    assert batch.isEmpty() == (total == 0)
    assert len(batch.orderBy("sequenceNumber").limit(5).collect()) == min(5, total)
    assert batch.rdd.map(lambda row: row.shardId).count() == total


def nowhere(rows: Iterator[Any]) -> None:
    for _ in rows:
        pass


def whole(batch: DataFrame, path: Path) -> None:
    counted(batch, path)
    cached(batch, path)
    windows(batch, path)
    iterated(batch, path)
    batch.foreachPartition(nowhere)
    out(batch.mapInArrow(lambda rows: rows, batch.schema))
    out(batch.dropDuplicates([KEY]).orderBy(KEY))
    files(batch, path)


def parts(batch: DataFrame, _: Path) -> None:
    batch.take(1)
    batch.limit(2).collect()
    batch.isEmpty()
    batch.rdd.take(1)
    next(iter(batch.toLocalIterator()), None)
    next(iter(batch.toLocalIterator(prefetchPartitions=True)), None)
    out(batch.limit(1))


def broadcast(batch: DataFrame, path: Path) -> None:
    for kind in ("inner", "left", "semi", "anti"):
        joined(kind, "broadcast")(batch, path)
    out(batch.crossJoin(F.broadcast(dimension(batch).select("value"))))


def merged(batch: DataFrame, path: Path) -> None:
    for kind in KINDS:
        joined(kind, "merge")(batch, path)
    joined("inner", "shuffle_hash")(batch, path)


def aggregated(batch: DataFrame, path: Path) -> None:
    out(batch.groupBy(KEY).count().join(dimension(batch), KEY))
    out(batch.groupBy(KEY).count().join(batch, KEY))
    joined("inner", "merge", rows=0)(batch, path)


def built(batch: DataFrame, path: Path) -> None:
    turned("inner", "broadcast")(batch, path)
    turned("semi", "merge")(batch, path)
    turned("inner", "shuffle_hash")(batch, path)
    turned("left", "merge")(batch, path)


GROUPS: dict[str, Query] = {group.__name__: group for group in (whole, parts, broadcast, merged, aggregated, built)}


def process(batch: DataFrame, info: Any) -> None:
    GROUPS[info.args["group"]](batch, Path(info.args["path"], str(info.batch)))
    if info.args["fails"]:
        raise RuntimeError("the sink is full")
