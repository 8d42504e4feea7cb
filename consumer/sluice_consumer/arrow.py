"""Rows as Spark gets them: Arrow record batches of a fixed schema."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from sluice_consumer.shard_reader import Fetched

ROWS = 10_000  # a record batch; much larger ones only cost memory (measured)

SCHEMA = pa.schema([
    ("partitionKey", pa.string()),
    ("data", pa.binary()),
    ("stream", pa.string()),
    ("shardId", pa.string()),
    ("sequenceNumber", pa.string()),
    ("subSequenceNumber", pa.int64()),
    ("approximateArrivalTimestamp", pa.timestamp("us", tz="UTC")),
])  # fmt: skip
# The same for Spark; the two must agree exactly, for Spark compares the first batch of a task with its own.
DDL = (
    "partitionKey STRING, data BINARY, stream STRING, shardId STRING, sequenceNumber STRING, subSequenceNumber BIGINT, "
    "approximateArrivalTimestamp TIMESTAMP"
)


def to_arrow(fetched: Fetched, stream: str) -> Iterator[pa.RecordBatch]:
    """The records of one range, in order, in batches of at most `ROWS`."""
    columns = fetched.columns
    for at in range(0, len(columns), ROWS):
        part = slice(at, at + ROWS)
        rows = len(columns.sequence[part])
        yield pa.record_batch(
            [
                pa.array(columns.partition_key[part], pa.string()),
                pa.array(columns.data[part], pa.binary()),
                pa.repeat(pa.scalar(stream, pa.string()), rows),
                pa.repeat(pa.scalar(fetched.shard_id, pa.string()), rows),
                pa.array(columns.sequence[part], pa.string()),
                pa.array(columns.sub[part], pa.int64()),
                pa.array(columns.arrival_millis[part], pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC")),
            ],
            schema=SCHEMA,
        )
