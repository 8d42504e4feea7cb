"""Rows as Spark gets them: Arrow record batches of a fixed schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sluice_consumer.kinesis import arrow_arrays
from sluice_consumer.kinesis.client import RecordColumns, Records
from sluice_consumer.kinesis.packed import PackedRecords
from sluice_consumer.shards.collect import RecordSlice
from sluice_consumer.shards.ranges import Fetched

ROWS = arrow_arrays.MANY  # a record batch; much larger ones only cost memory (measured)
ENOUGH = arrow_arrays.FEW  # from so many on, a row costs the same (measured)
ENOUGH_BYTES = 2**20  # of payload and keys: to copy more costs more than it saves
MOST_BYTES = 2**24  # of payload and keys in what is joined: memory, and Arrow's offsets end at 2 GiB

SCHEMA = pa.schema([
    ("partitionKey", pa.string()),
    ("data", pa.binary()),
    ("stream", pa.string()),
    ("shardId", pa.string()),
    ("sequenceNumber", pa.string()),
    ("subSequenceNumber", pa.int64()),
    ("approximateArrivalTimestamp", pa.timestamp("us", tz="UTC")),
])  # fmt: skip
# `columns.DDL` says the same to Spark. The two must agree exactly, for Spark compares the first batch of a task with its own.


Piece = tuple[str, RecordSlice]  # a shard, and some of its records


def to_arrow(ranges: Iterable[Fetched], stream: str) -> Iterator[pa.RecordBatch]:
    """The records of ranges, in order, in batches of at most `ROWS`.

    Small pieces are made one batch: at the tip, of many shards, each would cost the worker and Spark more than all of its rows.
    """
    for pieces in _together((fetched.shard_id, piece) for fetched in ranges for piece in fetched.columns.parts):
        batch = _batch(pieces, stream)
        yield from (batch.slice(at, ROWS) for at in range(0, batch.num_rows, ROWS))


def _together(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Neighbours that come to no more than `ROWS` and `MOST_BYTES`; those that are large enough stay alone."""
    held, rows, size = list[Piece](), 0, 0
    for piece in pieces:
        records = piece[1].records
        more_rows = len(records)
        alone = more_rows >= ENOUGH or (more_bytes := records.totals()[-1] + _keys(records)) >= ENOUGH_BYTES  # bytes of many rows need not be summed
        if held and (alone or rows + more_rows > ROWS or size + more_bytes > MOST_BYTES):
            yield held
            held, rows, size = [], 0, 0
        if alone:
            yield [piece]
        else:
            held.append(piece)
            rows, size = rows + more_rows, size + more_bytes
    if held:
        yield held


def _keys(records: RecordColumns) -> int:
    """Partition keys of aggregates: unlike those of Kinesis records they may be long."""
    return sum(map(len, records.partition_key)) if isinstance(records, Records) else 0


def _batch(pieces: list[Piece], stream: str) -> pa.RecordBatch:
    records = _packed([piece.records for _, piece in pieces])
    return pa.record_batch(
        [
            records.keys,
            records.payloads,
            arrow_arrays.constant(stream, len(records)),
            arrow_arrays.runs([(shard_id, len(piece.records)) for shard_id, piece in pieces]),
            records.sequences,
            arrow_arrays.numbers(np.concatenate([_sub(piece) for _, piece in pieces])),
            records.arrivals.cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC")),
        ],
        schema=SCHEMA,
    )


def _sub(piece: RecordSlice) -> npt.NDArray[np.int64]:
    return np.zeros(len(piece.records), np.int64) if piece.sub is None else np.array(piece.sub, np.int64)


def _packed(records: list[RecordColumns]) -> PackedRecords:
    """All of them, in order; what is in lists is joined there, which costs less than to join Arrow's."""
    packed = list[PackedRecords]()
    for _, run in groupby(records, type):
        alike = list(run)
        packed += [each for each in alike if isinstance(each, PackedRecords)] or [_of_lists(alike)]
    if len(packed) == 1:
        return packed[0]
    return PackedRecords(*map(pa.concat_arrays, zip(*((each.sequences, each.keys, each.payloads, each.arrivals) for each in packed), strict=True)))


def _of_lists(records: list[RecordColumns]) -> PackedRecords:
    return PackedRecords(
        arrow_arrays.texts(list(chain.from_iterable(each.sequence for each in records))),
        arrow_arrays.texts(list(chain.from_iterable(each.partition_key for each in records))),
        arrow_arrays.payloads(list(chain.from_iterable(each.data for each in records))),
        arrow_arrays.numbers(list(chain.from_iterable(each.arrival_millis for each in records))),
    )
