"""Rows as Spark gets them: Arrow record batches of a fixed schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from sluice_consumer import columns
from sluice_consumer.gathering import Part
from sluice_consumer.kinesis_packed import PackedRecords
from sluice_consumer.shard_reader import Fetched

ROWS = 10_000  # a record batch; much larger ones only cost memory (measured)
ENOUGH = 1_000  # from so many on, a row costs the same (measured)

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
    for part in fetched.columns.parts:
        batch = _batch(part, stream, fetched.shard_id)
        yield from (batch.slice(at, ROWS) for at in range(0, batch.num_rows, ROWS))


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, small batches made one: at the tip, of many shards, each would cost Spark more than to copy it."""
    held = list[pa.RecordBatch]()
    for batch in batches:
        large = batch.num_rows >= ENOUGH
        if held and (large or sum(one.num_rows for one in held) + batch.num_rows > ROWS):
            yield pa.concat_batches(held)
            held.clear()
        if large:
            yield batch
        else:
            held.append(batch)
    if held:
        yield pa.concat_batches(held)


def _batch(part: Part, stream: str, shard_id: str) -> pa.RecordBatch:
    keys, payloads, sequences, arrivals = _arrays(part)
    rows = len(part.records)
    return pa.record_batch(
        [
            keys,
            payloads,
            columns.constant(stream, rows),
            columns.constant(shard_id, rows),
            sequences,
            columns.numbers(np.zeros(rows, np.int64) if part.sub is None else part.sub),
            arrivals.cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC")),
        ],
        schema=SCHEMA,
    )


def _arrays(part: Part) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    records = part.records
    if isinstance(records, PackedRecords):
        return records.keys, records.payloads, records.sequences, records.arrivals
    return (
        columns.texts(records.partition_key),
        columns.payloads(records.data),
        columns.texts(records.sequence),
        columns.numbers(records.arrival_millis),
    )
