"""A bound range is read again exactly, or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading.kpl import aggregate, field_bytes, seal
from reading.stream import SHARD, Stream

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_consumer.kinesis.client import IteratorExpired, ShardNotFound
from sluice_consumer.shards.ranges import BoundRange, Limits
from sluice_consumer.shards.reader import ReplayShort

AGGREGATE = aggregate([(f"user-{i}", b"%d" % i) for i in range(5)])


def test_records_that_came_later_are_not_in_it(stream: Stream) -> None:
    stream.put(b"a", b"b")
    fetched = stream.fetch()
    stream.put(b"c")
    again = stream.replay(fetched)
    assert (again.columns, again.first, again.size) == (fetched.columns, fetched.first, fetched.size)
    assert (again.start, again.end) == (fetched.start, fetched.end)


def test_an_empty_range_needs_no_call(stream: Stream) -> None:
    fetched = stream.fetch()
    stream.client.calls.clear()
    assert stream.replay(fetched).records == 0
    assert stream.client.calls == []


def test_a_range_inside_an_aggregate(stream: Stream) -> None:
    numbers = stream.put(AGGREGATE, b"x")
    fetched = stream.fetch(Position.after(numbers[0], 2))
    assert stream.replay(fetched).columns == fetched.columns


@pytest.mark.parametrize("end", [3, None])
def test_a_range_inside_an_aggregate_is_read_through_empty_replies_in_front_of_it(stream: Stream, end: int | None) -> None:
    """Its start has the sequence number of its end: that does not say that it was read. A search for poison bounds such ranges."""
    number = stream.put(AGGREGATE)[0]
    stream.behaves(empty_pages=2)
    bound = BoundRange(SHARD, Position.after(number, 1), Position.after(number, end), number, (4 if end is None else end) - 1)
    assert stream.reader.replay(bound).columns.data == [b"2", b"3", b"4"][: bound.records]


def test_an_aggregate_that_an_older_version_has_bound_as_one_record_is_refused_with_the_way_out(stream: Stream) -> None:
    """It took aggregates with a key that is no text for records. What is read now can be accepted (`retention.settle`)."""
    users = b"".join(field_bytes(3, b"\x08\x00" + field_bytes(3, b"%d" % n)) for n in range(5))
    numbers = stream.put(seal(field_bytes(1, b"customer-\xc3") + users), b"x")
    bound = BoundRange(SHARD, TRIM_HORIZON, Position.after(numbers[1]), numbers[0], 2)
    with pytest.raises(ReplayShort, match=r"had 2 records, and now has 6.*set acceptLossOfBatch") as short:
        stream.reader.replay(bound)
    assert short.value.met
    assert short.value.left is not None
    assert short.value.left.columns.data == [b"0", b"1", b"2", b"3", b"4", b"x"]


def test_a_range_from_a_timestamp_begins_at_its_first_record(stream: Stream) -> None:
    """Timestamps of records are approximate and do not only grow; sequence numbers do."""
    stream.put(b"a", b"b")
    fetched = stream.fetch(Position.timestamp(stream.now - 2000))
    assert stream.replay(fetched).columns == fetched.columns


@pytest.mark.parametrize("end_with_records", [True, False])
def test_the_last_range_of_a_shard(stream: Stream, *, end_with_records: bool) -> None:
    stream.behaves(end_with_records=end_with_records)
    numbers = stream.put(b"a", b"b")
    stream.memory.split(SHARD)
    again = stream.reader.replay(BoundRange(SHARD, TRIM_HORIZON, END, numbers[0], 2))
    assert (again.columns.data, again.end, again.children) == ([b"a", b"b"], END, None)


def test_several_replies_and_expired_iterators(stream: Stream) -> None:
    stream.put(*[b"%d" % i for i in range(9)])
    fetched = stream.fetch()
    stream.behaves(page_records=2, empty_pages=2)
    real, calls = stream.client.get_records, iter(range(100))

    def now_and_then(shard_id: str, iterator: str, limit: int) -> object:
        if next(calls) % 4 == 3:
            raise IteratorExpired("expired")
        return real(shard_id, iterator, limit)

    stream.client.get_records = now_and_then  # type: ignore[method-assign, assignment]
    assert stream.replay(fetched).columns == fetched.columns


def test_no_answer_is_not_a_loss(stream: Stream) -> None:
    stream.put(b"a")
    fetched = stream.fetch()
    stream.client.fail(ServiceUnavailable("no answer"))
    with pytest.raises(ServiceUnavailable):
        stream.replay(fetched)


class TestShort:
    @pytest.mark.parametrize("trimmed", [1, 2, 3, 4])
    def test_records_expired(self, stream: Stream, trimmed: int) -> None:
        stream.put(b"a", b"b", b"c")
        fetched = stream.fetch()
        stream.put(b"d", b"e")
        stream.memory.trim(SHARD, trimmed)
        with pytest.raises(ReplayShort, match="had 3 records"):
            stream.replay(fetched)

    def test_the_end_is_not_met(self, stream: Stream) -> None:
        stream.put(b"a")
        fetched = stream.fetch()
        beyond = Position.after(str(int(fetched.end.sequence or 0) + 10))
        with pytest.raises(ReplayShort, match="its end is not met"):
            stream.replay(replace(fetched, end=beyond))

    def test_the_last_record_is_missing(self, stream: Stream) -> None:
        stream.put(b"a", b"b")
        fetched = stream.fetch()
        held = stream.memory.shards[SHARD]
        del held.records[1], held.numbers[1]
        stream.put(b"c")
        with pytest.raises(ReplayShort, match="had 2 records, and now has 1"):
            stream.replay(fetched)

    def test_there_are_more_than_were_bound(self, stream: Stream) -> None:
        stream.put(b"a", b"b")
        fetched = stream.fetch()
        with pytest.raises(ReplayShort, match="had 1 record, and now has 2"):
            stream.reader.replay(BoundRange(SHARD, fetched.start, fetched.end, fetched.first, 1))

    def test_the_end_of_the_shard_is_not_there(self, stream: Stream) -> None:
        numbers = stream.put(b"a")
        stream.memory.split(SHARD)
        ended = BoundRange(SHARD, TRIM_HORIZON, Position.after(numbers[0]), numbers[0], 1)
        assert stream.reader.replay(ended).records == 1
        stream.memory.trim(SHARD, 1)
        with pytest.raises(ReplayShort):
            stream.reader.replay(ended)

    def test_the_shard_expired(self, stream: Stream) -> None:
        stream.put(b"a")
        fetched = stream.fetch(limits=Limits(1, 10))
        stream.memory.split(SHARD)
        stream.memory.expire_shard(SHARD)
        with pytest.raises(ReplayShort, match="is gone"):
            stream.replay(fetched)

    def test_the_shard_vanished_on_the_way(self, stream: Stream) -> None:
        stream.put(b"a")
        fetched = stream.fetch()
        stream.client.fail(*[])
        stream.client.get_records = vanished  # type: ignore[method-assign, assignment]
        with pytest.raises(ReplayShort, match="is gone"):
            stream.replay(fetched)


def vanished(*_call: object) -> object:
    raise ShardNotFound("no such shard")
