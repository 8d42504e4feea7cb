"""Rows reach Spark with its own schema, complete and in order."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from reading.stream import START_MILLIS

from sluice_checkpoints.position import END, TRIM_HORIZON
from sluice_consumer.columns import DDL
from sluice_consumer.kinesis import arrow_arrays
from sluice_consumer.kinesis.client import Records
from sluice_consumer.kinesis.packed import PackedRecords
from sluice_consumer.shards.collect import RecordColumnSet, RecordSlice
from sluice_consumer.shards.ranges import Fetched
from sluice_consumer.spark.arrow import ENOUGH, ENOUGH_BYTES, MOST_BYTES, ROWS, SCHEMA, to_arrow


def records(numbers: Iterable[int]) -> Records:
    texts = [str(number) for number in numbers]
    return Records(texts, ["k"] * len(texts), [text.encode() for text in texts], [START_MILLIS + 123] * len(texts))


def packed(listed: Records) -> PackedRecords:
    return PackedRecords(
        arrow_arrays.texts(listed.sequence),
        arrow_arrays.texts(listed.partition_key),
        arrow_arrays.payloads(listed.data),
        arrow_arrays.numbers(listed.arrival_millis),
    )


def fetched(rows: int) -> Fetched:
    parts = [range(at, min(at + ROWS, rows)) for at in range(0, rows, ROWS)]
    return Fetched("shard", TRIM_HORIZON, END, RecordColumnSet([RecordSlice(records(part), [7] * len(part)) for part in parts]))


def test_the_schema_is_sparks() -> None:
    """Spark compares the two exactly, down to the time zone."""
    types = pytest.importorskip("pyspark.sql.pandas.types")
    parsed = pytest.importorskip("pyspark.sql.types").StructType()
    simple = {"STRING": "string", "BINARY": "binary", "BIGINT": "long", "TIMESTAMP_LTZ": "timestamp"}
    for column in DDL.split(", "):
        name, kind = column.split()
        parsed = parsed.add(name, simple[kind])
    named = {"timezone": "UTC"} if "timezone" in inspect.signature(types.to_arrow_schema).parameters else {}  # older lines know UTC alone
    assert types.to_arrow_schema(parsed, **named).equals(SCHEMA)


def test_every_column_is_filled() -> None:
    (batch,) = to_arrow([fetched(1)], "orders")
    assert batch.schema.equals(SCHEMA)
    assert batch.to_pylist() == [
        {
            "partitionKey": "k",
            "data": b"0",
            "stream": "orders",
            "shardId": "shard",
            "sequenceNumber": "0",
            "subSequenceNumber": 7,
            "approximateArrivalTimestamp": datetime.fromtimestamp((START_MILLIS + 123) / 1000, UTC),
        }
    ]


@pytest.mark.parametrize(("rows", "sizes"), [(0, []), (1, [1]), (ROWS, [ROWS]), (2 * ROWS + 5, [ROWS, ROWS, 5])])
def test_batches_are_bounded(rows: int, sizes: list[int]) -> None:
    batches = list(to_arrow([fetched(rows)], "orders"))
    assert [batch.num_rows for batch in batches] == sizes
    if batches:
        assert pa.Table.from_batches(batches).column("data").to_pylist() == fetched(rows).columns.data


SIZES = {
    "nothing": ([], []),
    "small ones are one": ([3, 1, 2], [6]),
    "large ones stay what they are": ([ROWS, ENOUGH, ROWS], [ROWS, ENOUGH, ROWS]),
    "small ones before a large one": ([3, 4, ENOUGH, 5], [7, ENOUGH, 5]),
    "no more than a batch may hold": ([ENOUGH - 1] * 11, [10 * (ENOUGH - 1), ENOUGH - 1]),
}


@pytest.mark.parametrize("kinds", ["lists", "packed", "both"])
@pytest.mark.parametrize(("sizes", "expected"), SIZES.values(), ids=SIZES.keys())
def test_small_ranges_are_made_one_batch(sizes: list[int], expected: list[int], kinds: str) -> None:
    """Each batch costs Spark something, whatever its size; rows keep their order, and the shard that they are of."""
    starts, ranges = [sum(sizes[:i]) for i in range(len(sizes))], list[Fetched]()
    for i, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        listed = records(range(start, start + size))
        part = RecordSlice(packed(listed)) if kinds == "packed" or (kinds == "both" and i % 3 == 1) else RecordSlice(listed, [i] * size)
        ranges.append(Fetched(f"shard-{i}", TRIM_HORIZON, END, RecordColumnSet([part])))
    found = list(to_arrow(ranges, "orders"))
    assert [batch.num_rows for batch in found] == expected
    rows = [row for batch in found for row in batch.to_pylist()]
    assert [row["sequenceNumber"] for row in rows] == [str(number) for number in range(sum(sizes))]
    assert [row["data"] for row in rows] == [str(number).encode() for number in range(sum(sizes))]
    assert [row["shardId"] for row in rows] == [f"shard-{i}" for i, size in enumerate(sizes) for _ in range(size)]
    assert {row["stream"] for row in rows} <= {"orders"}
    if kinds == "lists":
        assert [row["subSequenceNumber"] for row in rows] == [i for i, size in enumerate(sizes) for _ in range(size)]


BYTES = {
    "a large record stays alone": ([10, ENOUGH_BYTES, 10], [[10], [ENOUGH_BYTES], [10]]),
    "no more bytes than a batch may hold": ([ENOUGH_BYTES - 1] * 17, [[ENOUGH_BYTES - 1] * (MOST_BYTES // ENOUGH_BYTES), [ENOUGH_BYTES - 1]]),
}


@pytest.mark.parametrize(("sizes", "expected"), BYTES.values(), ids=BYTES.keys())
def test_bytes_that_are_joined_are_bounded(sizes: list[int], expected: list[list[int]]) -> None:
    """A thousand shards may have as much in memory as Arrow's offsets cannot count."""
    ranges = [Fetched("s", TRIM_HORIZON, END, RecordColumnSet([RecordSlice(Records(["1"], [""], [bytes(size)], [START_MILLIS]))])) for size in sizes]
    assert [list(map(int, arrow_arrays.lengths(batch.column(1)))) for batch in to_arrow(ranges, "orders")] == expected


def test_long_partition_keys_count_as_bytes_too() -> None:
    """Those of aggregates have no limit of their own."""
    ranges = [
        Fetched("s", TRIM_HORIZON, END, RecordColumnSet([RecordSlice(Records(["1"], ["k" * 2**19], [b""], [START_MILLIS]))])) for _ in range(33)
    ]
    assert [batch.num_rows for batch in to_arrow(ranges, "orders")] == [32, 1]
