"""Calls a function of the user's for each shard of a batch: databases, queues, HTTP (docs/sinks.md, "Databases")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluice_consumer.batches import worker_errors
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import options

Rows = Iterator[dict[str, Any]]
COUNTED = "shardId STRING, rows BIGINT"


@dataclass(frozen=True)
class Part:
    """The key of what one call of the function gets: always the same rows, in the same order, whoever replays the batch.

    Attributes:
        consumer: the table's `consumerId`.
        batch: number of the batch over the consumer's whole life.
        shard: id of the shard.
        args: `pipeline.args`.
    """

    consumer: str
    batch: int
    shard: str
    args: dict[str, Any]


EXAMPLE = "as in my_module:upsert"
Function = Callable[[Rows, Part], None]


class Foreach:
    """The sink `sluice_consumer.sinks:foreach`; `args.function` is `module:function`.

    The function runs in Spark's tasks. It gets the rows of one shard in their order, and a `Part`. It stores the part's key in the same transaction
    as the rows, and skips a key that is there. A part may come again, also while a former attempt at it is being ended.
    """

    def prepare(self, _spark: SparkSession, args: dict[str, Any]) -> None:
        """Refuses what would fail, before the first batch.

        Raises:
            Refused: `args.function` is missing, or there is no such function.
        """
        options.function(options.text(args, "function", EXAMPLE), "pipeline.args.function")

    def __call__(self, batch: DataFrame, info: BatchInfo, function: Function | None = None) -> None:
        """Calls the function for each shard of the batch that has rows.

        Raises:
            Refused: see `prepare`. Else what the function raises, as Spark tells it; parts that were stored stay stored.
        """
        called = function or options.function(options.text(dict(info.args), "function", EXAMPLE), "pipeline.args.function")
        batch.mapInArrow(calls(called, (info.consumer, info.batch), dict(info.args)), COUNTED).count()


def calls(function: Function, key: tuple[str, int], args: dict[str, Any]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task runs. A task's shards come one after the other, so a shard's rows are neighbours."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        worker_errors.install()
        every = (row for batch in batches for row in batch.to_pylist())
        for shard, group in groupby(every, lambda row: str(row["shardId"])):
            counted = _Counted(group)
            function(counted, Part(*key, shard, args))
            for _ in counted:  # the function had enough
                pass
            yield pa.RecordBatch.from_pydict({"shardId": [shard], "rows": [counted.rows]})

    return run


class _Counted:
    """Rows, and how many there were."""

    def __init__(self, group: Iterator[dict[str, Any]]) -> None:
        self._group, self.rows = group, 0

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> dict[str, Any]:
        row = next(self._group)
        self.rows += 1
        return row


foreach = Foreach()
