"""In a run that ends at a timestamp, a range ends in front of the first record that arrived then or later (docs/protocol.md, "Where a run ends")."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading.kpl import aggregate
from reading.stream import PLENTY, SHARD, START_MILLIS, Stream

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches.planner import TableView
from sluice_consumer.batches.run_end import SETTLED_MILLIS, RunEnd
from sluice_consumer.shards.ranges import Fetched, Limits

UNTIL = START_MILLIS + 2000
BOUNDED = replace(PLENTY, until_millis=UNTIL)


def past(fetched: Fetched) -> bool:
    bound = {"read_to": fetched.read_to, "behind": fetched.behind, "iterator": fetched.iterator, "records": fetched.records}
    row = ShardRow(SHARD, fetched.start, fetched.end, batch=1, readers={"1.0.0": 1}, read_by="1.0.0", **bound)  # type: ignore[arg-type]  # of one dictionary
    return RunEnd(UNTIL).past(TableView({SHARD: row}, 1, frozenset())) == {SHARD}


def test_a_record_that_arrived_at_the_timestamp_is_not_in_the_range(stream: Stream) -> None:
    numbers = stream.put(b"0", b"1", b"at", b"after")
    fetched = stream.fetch(limits=BOUNDED)
    assert (fetched.columns.data, fetched.end, fetched.read_to, fetched.cut) == ([b"0", b"1"], Position.after(numbers[1]), UNTIL, True)
    assert stream.fetch(fetched.end).columns.data == [b"at", b"after"]
    assert fetched.behind


def test_what_lies_behind_the_cut_is_not_delivered_whatever_its_arrival(stream: Stream) -> None:
    """Arrivals are not strictly in order. A start at this timestamp begins at the same record: no record is in both runs, none in neither."""
    stream.put(b"0", b"1", b"at")
    stream.now = UNTIL - 1
    stream.put(b"early")
    assert stream.fetch(limits=BOUNDED).columns.data == [b"0", b"1"]
    assert stream.fetch(Position.timestamp(UNTIL)).columns.data == [b"at", b"early"]


def test_an_earlier_arrival_in_front_of_the_cut_is_delivered(stream: Stream) -> None:
    stream.put(b"0")
    stream.now = START_MILLIS - 5000
    stream.put(b"early")
    stream.now = UNTIL
    stream.put(b"at")
    assert stream.fetch(limits=BOUNDED).columns.data == [b"0", b"early"]


def test_a_shard_whose_first_record_is_behind_the_timestamp_is_cut_where_it_begins(stream: Stream) -> None:
    stream.now = UNTIL
    stream.put(b"at")
    fetched = stream.fetch(limits=BOUNDED)
    assert fetched.behind > 0
    assert (fetched.end, fetched.records, fetched.read_to, fetched.cut) == (TRIM_HORIZON, 0, UNTIL, True)


def test_the_cut_comes_before_the_end_of_a_shard(stream: Stream) -> None:
    """A closed shard whose last reply holds the cut has not ended: its children are not read."""
    stream.behaves(end_with_records=True)
    stream.put(b"0", b"1", b"at")
    stream.memory.split(SHARD)
    fetched = stream.fetch(limits=BOUNDED)
    assert (fetched.columns.data, fetched.cut, fetched.children) == ([b"0", b"1"], True, None)


def test_a_shard_that_ended_before_the_timestamp_is_read_to_its_end(stream: Stream) -> None:
    stream.put(b"0")
    children = stream.memory.split(SHARD)
    stream.now += 10 * SETTLED_MILLIS
    first = stream.fetch(limits=BOUNDED)
    assert (first.columns.data, first.end == END, past(first)) == ([b"0"], False, False)  # it has yet to say so
    fetched = stream.fetch(first.end, BOUNDED, first.read_to)
    assert (fetched.records, fetched.end, fetched.cut) == (0, END, False)
    assert {child.id for child in fetched.children or ()} == set(children)
    assert fetched.read_to == START_MILLIS  # its children are younger than its last record


@pytest.mark.parametrize("records", [0, 1])
@pytest.mark.parametrize(("since", "expected"), [(-1000, False), (0, False), (SETTLED_MILLIS - 1000, False), (SETTLED_MILLIS, True)])
def test_the_tip_is_past_the_timestamp_only_when_nothing_earlier_can_come(stream: Stream, since: int, expected: bool, records: int) -> None:  # noqa: FBT001
    """A record becomes readable a while after its arrival. After records a closed shard has yet to say its end, so a range with some says nothing."""
    stream.put(*[b"0"] * records)
    stream.now = UNTIL + since
    fetched = stream.fetch(limits=BOUNDED)
    if records:
        assert not past(fetched)
        fetched = stream.fetch(fetched.end, BOUNDED, fetched.read_to)
    assert past(fetched) is expected


def test_empty_replies_far_from_the_tip_do_not_say_that_a_shard_is_past_the_timestamp(stream: Stream) -> None:
    """What MillisBehindLatest counts there differs between services."""
    stream.behaves(empty_pages=1000)
    stream.now = UNTIL + 2 * stream.memory.retention_millis
    fetched = stream.fetch(limits=BOUNDED)
    assert (fetched.records, fetched.read_to > UNTIL, past(fetched)) == (0, True, False)


@pytest.mark.parametrize(("arrival", "is_past"), [(UNTIL - 1, False), (UNTIL, True)])
def test_a_limit_behind_the_timestamp_is_past_it(stream: Stream, arrival: int, *, is_past: bool) -> None:
    """Whoever has read that, without an end or with another one: the cut is in front of a record that was read."""
    stream.put(b"0")
    stream.now = arrival
    stream.put(b"1", b"2")
    stream.behaves(page_records=10)
    assert past(stream.fetch(limits=Limits(100, 2))) is is_past


@pytest.mark.parametrize("cut_at", [UNTIL - 1000, UNTIL, UNTIL + 1000])
def test_a_cut_says_when_the_record_behind_it_arrived(stream: Stream, cut_at: int) -> None:
    """All in front of it was read. Whoever goes on without an end a day after the timestamp suspects no loss where nothing came."""
    stream.put(b"0")
    stream.now = UNTIL + 9000
    stream.put(b"behind")
    fetched = stream.fetch(limits=replace(PLENTY, until_millis=cut_at))
    assert (fetched.columns.data, fetched.cut, fetched.read_to, fetched.behind) == ([b"0"], True, UNTIL + 9000, 1000)
    assert past(fetched)


def test_a_limit_in_front_of_the_cut_is_the_end_of_the_range(stream: Stream) -> None:
    stream.put(b"0", b"1", b"at")
    first = stream.fetch(limits=Limits(1, 1000, UNTIL))
    assert (first.columns.data, first.cut) == ([b"0"], False)
    assert not past(first)
    second = stream.fetch(first.end, BOUNDED, first.read_to)
    assert (second.columns.data, second.cut) == ([b"1"], True)


def test_an_aggregate_is_cut_as_a_whole(stream: Stream) -> None:
    """It has one arrival."""
    stream.put(aggregate([("k", b"a"), ("k", b"b")]), b"1", aggregate([("k", b"c"), ("k", b"d")]))
    assert stream.fetch(limits=BOUNDED).columns.data == [b"a", b"b", b"1"]


def test_a_cut_without_a_record_in_a_stream_that_was_made_again_is_refused(stream: Stream) -> None:
    """Else the run would end by the records of another stream."""
    stream.now = UNTIL
    stream.memory.recreate()
    stream.put(b"at")
    with pytest.raises(Refused, match="created again"):
        stream.fetch(limits=BOUNDED)


def test_a_bound_range_is_replayed_whatever_the_timestamp(stream: Stream) -> None:
    stream.put(b"0", b"1", b"at", b"after")
    bound = stream.fetch()
    assert stream.replay(bound).columns.data == [b"0", b"1", b"at", b"after"]
