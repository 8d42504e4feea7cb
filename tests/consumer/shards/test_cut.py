"""In a run that ends at a timestamp, a range ends in front of the first record that arrived then or later (docs/protocol.md, "Where a run ends")."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading.kpl import aggregate
from reading.stream import PLENTY, SHARD, START_MILLIS, Stream

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_consumer.shards.cut import SETTLED_MILLIS
from sluice_consumer.shards.ranges import Limits

UNTIL = START_MILLIS + 2000
BOUNDED = replace(PLENTY, until_millis=UNTIL)


def test_a_record_that_arrived_at_the_timestamp_is_not_in_the_range(stream: Stream) -> None:
    """Those in front of it are, and the next reader begins with it."""
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
    """It is in front of the first record that a start at the timestamp begins with."""
    stream.put(b"0")
    stream.now = START_MILLIS - 5000
    stream.put(b"early")
    stream.now = UNTIL
    stream.put(b"at")
    assert stream.fetch(limits=BOUNDED).columns.data == [b"0", b"early"]


def test_a_shard_whose_first_record_is_behind_the_timestamp_is_cut_where_it_begins(stream: Stream) -> None:
    """One range says so; it moves nothing. It is never at the tip, whatever the service says in that second."""
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
    """Its children are read then."""
    stream.put(b"0")
    children = stream.memory.split(SHARD)
    stream.now += 10 * SETTLED_MILLIS
    first = stream.fetch(limits=BOUNDED)
    assert (first.columns.data, first.end == END, first.read_to < UNTIL) == ([b"0"], False, True)  # it has yet to say so
    fetched = stream.fetch(first.end, BOUNDED, first.read_to)
    assert (fetched.records, fetched.end, fetched.cut) == (0, END, False)
    assert {child.id for child in fetched.children or ()} == set(children)
    assert fetched.read_to < UNTIL


@pytest.mark.parametrize("records", [0, 1])
@pytest.mark.parametrize(("since", "past"), [(-1000, False), (0, False), (SETTLED_MILLIS - 1000, False), (SETTLED_MILLIS, True)])
def test_the_tip_is_past_the_timestamp_only_when_nothing_earlier_can_come(stream: Stream, since: int, past: bool, records: int) -> None:  # noqa: FBT001
    """A record becomes readable a while after its arrival. After records a closed shard has yet to say its end, so a range with some says nothing."""
    stream.put(*[b"0"] * records)
    stream.now = UNTIL + since
    fetched = stream.fetch(limits=BOUNDED)
    if records:
        assert fetched.read_to < UNTIL
        fetched = stream.fetch(fetched.end, BOUNDED, fetched.read_to)
    assert (fetched.read_to >= UNTIL) is past


def test_empty_replies_far_from_the_tip_do_not_say_that_a_shard_is_past_the_timestamp(stream: Stream) -> None:
    """What MillisBehindLatest counts there differs between services."""
    stream.behaves(empty_pages=1000)
    stream.now = UNTIL + 2 * stream.memory.retention_millis
    fetched = stream.fetch(limits=BOUNDED)
    assert (fetched.records, fetched.read_to) == (0, UNTIL - 1)


def test_a_limit_in_front_of_the_cut_is_the_end_of_the_range(stream: Stream) -> None:
    """The next range has the rest."""
    stream.put(b"0", b"1", b"at")
    first = stream.fetch(limits=Limits(1, 1000, UNTIL))
    assert (first.columns.data, first.cut) == ([b"0"], False)
    assert first.read_to < UNTIL
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
    with pytest.raises(Refused, match="made again"):
        stream.fetch(limits=BOUNDED)


def test_a_bound_range_is_replayed_whatever_the_timestamp(stream: Stream) -> None:
    """It is a promise to the sink."""
    stream.put(b"0", b"1", b"at", b"after")
    bound = stream.fetch()
    assert stream.replay(bound).columns.data == [b"0", b"1", b"at", b"after"]
