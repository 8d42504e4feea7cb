"""A pipeline that keeps what it is given, in the order in which it came."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

# Shard, batch, sequence number, place inside the aggregate, payload. The batch tells whether children came before their parents.
delivered: list[tuple[str, int, str, int, str]] = []


def collect(batch: DataFrame, info: Any) -> None:
    rows = batch.select("shardId", "sequenceNumber", "subSequenceNumber", "data").collect()
    delivered.extend((row.shardId, info.batch, row.sequenceNumber, row.subSequenceNumber, bytes(row.data).decode()) for row in rows)
