"""Whether the rows of each shard are in one part of a DataFrame, neighbours of each other (docs/sinks.md, "Databases").

A position is of a shard: rows that come in a second part would be skipped as old. So this is known before any is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from sluice_checkpoints.errors import Refused
from sluice_consumer.columns import FORMAT
from sluice_consumer.poison import worker_errors

PARTS = "shardId STRING"
KEEPS = frozenset({"Project", "Filter", "Generate", "BatchEvalPython", "ArrowEvalPython"})  # row by row, in the task that has the row
READS = "DataSourceV2ScanRelation"


def check(batch: DataFrame) -> None:
    """Refuses rows that came apart. What the data source gives is never apart; other plans are looked at first, which runs them once more.

    Raises:
        Refused: naming a shard. Else what reading raises.
    """
    if as_read(batch._jdf.queryExecution().optimizedPlan()):  # noqa: SLF001 - Spark has no other way to ask
        return
    together((row.shardId for row in batch.mapInArrow(_parts, PARTS).collect()), "nothing was stored")


def together(shards: Iterable[str], told: str) -> None:
    """Refuses a shard that is named twice: once for each of its parts. `told`: what has become of its rows.

    Raises:
        Refused: naming it.
    """
    if apart := sorted(shard for shard, parts in Counter(shards).items() if parts > 1):
        raise Refused(
            f"foreach: the rows of {apart[0]} came in several parts, so their positions are not in order; {told}. "
            "Leave `repartition`, `union` and joins out before `foreach`, or sort: repartition('shardId').sortWithinPartitions('shardId', …)"
        )


def as_read(plan: Any) -> bool:
    """Whether a plan takes the batch's rows one by one as the data source gives them, with nothing that moves or mixes them. Unknown is no."""
    while plan.nodeName() in KEEPS:
        plan = plan.children().head()
    return str(plan.nodeName()) == READS and str(plan.relation().table().name()) == FORMAT


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    worker_errors.install()
    every = (shard for batch in batches for shard in batch.column("shardId").to_pylist())
    for shard, _ in groupby(every):
        yield pa.RecordBatch.from_pydict({"shardId": [shard]})
