"""Whichever way a reply's records are held, the same of them are taken."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading.cbor import Style
from reading.kpl import aggregate, empties, seal
from reading.stream import START_MILLIS

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_consumer.kinesis import cbor
from sluice_consumer.kinesis.client import RecordColumns, Records
from sluice_consumer.shards.collect import RangeBuffer
from sluice_consumer.shards.ranges import Fetched
from sluice_consumer.spark.arrow import to_arrow

SESSION = settings(max_examples=80, deadline=None)
AGGREGATE = aggregate([("a", b"1"), ("b", b"2"), ("c", b"3")])
COUNT = cbor.WORTH_IT


def page(first: int, payloads: list[bytes]) -> Records:
    numbers = range(first, first + len(payloads))
    return Records([str(n) for n in numbers], [f"k{n}" for n in numbers], payloads, [START_MILLIS + n for n in numbers])


def packed(records: Records) -> RecordColumns:
    found: RecordColumns = cbor.decode(Style().reply(records))["Records"]
    return found


def gathered(start: Position, pages: Iterable[RecordColumns], limits: tuple[int, int]) -> RangeBuffer:
    taken = RangeBuffer(start)
    for each in pages:
        if not taken.take(each, *limits):
            break
    return taken


@given(
    sizes=st.lists(st.integers(0, 30), min_size=2 * COUNT, max_size=3 * COUNT),
    aggregates=st.sets(st.integers(0, 3 * COUNT), max_size=3),
    limits=st.tuples(st.integers(1, 4 * COUNT), st.integers(1, 3000)),
    start=st.one_of(st.just(TRIM_HORIZON), st.builds(Position.after, st.integers(1000, 1080).map(str), st.none() | st.integers(-1, 3))),
)
@SESSION
def test_packed_and_listed_records_give_the_same_range(sizes: list[int], aggregates: set[int], limits: tuple[int, int], start: Position) -> None:
    payloads = [AGGREGATE if i in aggregates else b"x" * size for i, size in enumerate(sizes)]
    pages = [page(1000, payloads[:COUNT]), page(1000 + COUNT, payloads[COUNT:])]
    listed, fast = gathered(start, pages, limits), gathered(start, map(packed, pages), limits)
    assert fast.columns == listed.columns
    assert (fast.position, fast.size, fast.taken, fast.first) == (listed.position, listed.size, listed.taken, listed.first)
    rows = [batch.to_pylist() for taken in (listed, fast) for batch in to_arrow([Fetched("shard", start, start, taken.columns)], "orders")]
    assert rows[: len(rows) // 2] == rows[len(rows) // 2 :]


def test_a_limit_cuts_between_records_and_counts_from_the_first() -> None:
    made = packed(page(0, [b"x" * 10] * COUNT))
    for limits, taken in [((5, 1000), 5), ((1000, 39), 3), ((1000, 40), 4), ((1, 1), 1)]:
        assert len(gathered(TRIM_HORIZON, [made], limits).columns) == taken


def test_short_replies_become_one_batch() -> None:
    """Each further one costs Spark more than copying a few rows."""
    pages = [page(100 * i, [b"%d" % i] * 3) for i in range(4)]
    taken = gathered(TRIM_HORIZON, pages, (1000, 1000))
    (batch,) = to_arrow([Fetched("shard", TRIM_HORIZON, taken.position, taken.columns)], "orders")
    assert batch.column("data").to_pylist() == taken.columns.data


def test_aggregates_count_as_what_they_become() -> None:
    """One key for many user records is sent once and delivered many times; memory is what the limit is about."""
    swelling = aggregate([("k" * 250, b"")] * 40)
    taken = gathered(TRIM_HORIZON, [page(0, [swelling] * 5)], (1000, 20_000))
    assert (len(taken.columns), taken.delivered, taken.size) == (80, 20_000, 2 * len(swelling))


@pytest.mark.parametrize("data", [b"plain", seal(b"\x0a\x7f"), seal(b"")], ids=["a plain record", "a damaged aggregate", "an empty message"])
def test_a_record_that_is_no_aggregate_comes_at_any_place_inside_of_it_but_its_own(data: bytes) -> None:
    """KCL writes 0 for a record that it has processed. Another number says that somebody has taken it apart: then its rest may be owed."""
    for sub, rows in [(0, 0), (1, 1), (7, 1)]:
        taken = gathered(Position.after("7", sub), [page(7, [data, b"next"])], (1000, 1000))
        assert taken.columns.data == [data] * rows + [b"next"]


def test_an_aggregate_with_a_key_that_is_missing_comes_whole_after_those_that_kcl_delivered() -> None:
    """It drops the rest, or fails at it."""
    users = b"\x1a\x04\x08\x00\x1a\x00" * 2 + b"\x1a\x04\x08\x07\x1a\x00"
    whole = seal(b"\x0a\x01a" + users)
    for sub, rows in [(0, 1), (1, 1), (2, 0)]:
        assert len(gathered(Position.after("7", sub), [page(7, [whole])], (1000, 1000)).columns) == rows


def test_an_aggregate_delivered_whole_counts_as_read_only_up_to_its_last_user_record() -> None:
    """A migrated place inside of it: what the former consumer had not processed must come."""
    whole = empties(100_000, b"k" * 200_000)
    for sub, rows in [(99_999, 0), (99_998, 1), (0, 1)]:
        taken = gathered(Position.after("7", sub), [page(7, [whole])], (1000, 1000))
        assert len(taken.columns) == rows
