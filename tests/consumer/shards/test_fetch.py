"""A new range holds what comes after its position, ends on a whole Kinesis record, and says truly how far it went."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading.kpl import aggregate
from reading.pages import AGGREGATE, EMPTY
from reading.stream import PLENTY, SHARD, START_MILLIS, Stream

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_consumer.kinesis.client import ShardNotFound
from sluice_consumer.shards.ranges import FetchRequest, Limits
from sluice_consumer.shards.reader import FOLLOWED


def test_a_range_holds_all_records_up_to_the_tip(stream: Stream) -> None:
    numbers = stream.put(b"a", b"b", b"c")
    fetched = stream.fetch()
    assert fetched.columns.data == [b"a", b"b", b"c"]
    assert fetched.columns.sequence == numbers
    assert fetched.columns.partition_key == ["key"] * 3
    assert fetched.columns.sub == [0, 0, 0]
    assert fetched.columns.arrival_millis == [START_MILLIS, START_MILLIS + 1000, START_MILLIS + 2000]
    assert (fetched.start, fetched.end, fetched.first) == (TRIM_HORIZON, Position.after(numbers[2]), numbers[0])
    assert (fetched.records, fetched.size, fetched.behind, fetched.children) == (3, 3, 0, None)
    assert fetched.read_to == stream.now


def test_the_next_range_begins_where_one_ended(stream: Stream) -> None:
    stream.put(b"a", b"b")
    end = stream.fetch().end
    stream.put(b"c")
    assert stream.fetch(end).columns.data == [b"c"]


def test_an_empty_range_stays_where_it_was(stream: Stream) -> None:
    assert stream.fetch().end == TRIM_HORIZON
    (number,) = stream.put(b"a")
    fetched = stream.fetch(Position.after(number))
    assert (fetched.end, fetched.first, fetched.records) == (Position.after(number), None, 0)


def test_an_empty_range_from_a_timestamp_moves_to_two_minutes_ago(stream: Stream) -> None:
    """An idle shard's TIMESTAMP follows the service's clock, and never back."""
    stream.now += 600_000
    assert stream.fetch(Position.timestamp(START_MILLIS)).end == Position.timestamp(stream.now - 120_000)
    recent = Position.timestamp(stream.now - 5)
    assert stream.fetch(recent).end == recent


def test_a_timestamp_becomes_a_record_once_there_is_one(stream: Stream) -> None:
    numbers = stream.put(b"old", b"new")
    fetched = stream.fetch(Position.timestamp(START_MILLIS + 500))
    assert (fetched.columns.data, fetched.end) == ([b"new"], Position.after(numbers[1]))


def test_a_clock_of_the_service_that_is_behind_takes_nothing_back(stream: Stream) -> None:
    (number,) = stream.put(b"a")
    assert stream.fetch(Position.after(number), read_to=stream.now + 5000).read_to == stream.now + 5000


def test_a_range_that_ends_in_front_of_a_record_was_read_up_to_its_last_one_whatever_the_tip_was_before(stream: Stream) -> None:
    """A record may become readable a while after it arrived, so the next one may have arrived before the tip, too."""
    (number, *_) = stream.put(b"read", b"late", b"later")
    stream.behaves(page_records=10)
    fetched = stream.fetch(Position.after(number), Limits(100, 5), stream.now)
    assert (fetched.columns.data, fetched.read_to, fetched.behind > 0) == ([b"late"], START_MILLIS + 1000, True)


class TestGoingOn:
    """Whoever reads a shard's next range goes on with the iterator that the last one left."""

    def test_no_new_iterator_is_asked_for(self, stream: Stream) -> None:
        stream.put(b"a")
        first = stream.fetch()
        stream.put(b"b")
        assert stream.go_on(first).columns.data == [b"b"]
        assert stream.client.calls.count("GetShardIterator") == 1

    def test_an_empty_range_leaves_one_too(self, stream: Stream) -> None:
        stream.put(b"a")
        empty = stream.go_on(stream.fetch())
        stream.put(b"b")
        assert stream.go_on(empty).columns.data == [b"b"]
        assert stream.client.calls.count("GetShardIterator") == 1

    def test_a_range_that_was_cut_leaves_none(self, stream: Stream) -> None:
        """The iterator of its last reply is already further."""
        stream.put(b"aaaa", b"bbbb", b"cccc")
        cut = stream.fetch(limits=Limits(100, 8))
        assert (cut.records, cut.iterator) == (2, None)
        assert stream.go_on(cut).columns.data == [b"cccc"]

    def test_a_place_that_moves_with_the_clock_leaves_none(self, stream: Stream) -> None:
        """The next range begins at a time, and its iterator is to begin there, too."""
        fetched = stream.fetch(Position.timestamp(START_MILLIS))
        assert (fetched.end.at, fetched.iterator) == ("TIMESTAMP", None)

    def test_the_end_of_a_shard_leaves_none(self, stream: Stream) -> None:
        stream.put(b"a")
        stream.memory.split(SHARD)
        ended = stream.go_on(stream.fetch())
        assert (ended.end, ended.iterator) == (END, None)

    @pytest.mark.parametrize("said", [Refused("InvalidArgumentException: the shard iterator is not valid"), ShardNotFound("of another stream")])
    def test_one_that_is_not_taken_is_as_good_as_none(self, stream: Stream, said: Exception) -> None:
        """It stands in the row, and what it makes the service say would be said to every epoch."""
        stream.put(b"a")
        first = stream.fetch()
        stream.put(b"b")
        stream.client.fail(said)
        assert stream.go_on(first).columns.data == [b"b"]
        assert stream.client.calls.count("GetShardIterator") == 2

    def test_what_is_said_of_a_new_one_is_believed(self, stream: Stream) -> None:
        stream.put(b"a")
        first = replace(stream.fetch(), iterator=None)
        real = stream.client.get_iterator

        def then_fail(shard_id: str, position: Position) -> str:
            iterator = real(shard_id, position)
            stream.client.fail(Refused("AccessDeniedException"))
            return iterator

        stream.client.get_iterator = then_fail  # type: ignore[method-assign]
        with pytest.raises(Refused, match="AccessDenied"):
            stream.go_on(first)

    def test_one_that_expired_is_renewed(self, stream: Stream) -> None:
        """Batches may be more than five minutes apart, and lives days."""
        stream.put(b"a")
        first = stream.fetch()
        stream.now += 301_000
        stream.put(b"b")
        assert stream.go_on(first).columns.data == [b"b"]
        assert stream.client.calls.count("GetShardIterator") == 2


class TestLimits:
    def test_records(self, stream: Stream) -> None:
        numbers = stream.put(b"a", b"b", b"c")
        fetched = stream.fetch(limits=Limits(2, 100))
        assert (fetched.columns.data, fetched.end) == ([b"a", b"b"], Position.after(numbers[1]))

    def test_bytes(self, stream: Stream) -> None:
        numbers = stream.put(b"aaaa", b"bbbb", b"cccc")
        fetched = stream.fetch(limits=Limits(100, 11))
        assert (fetched.size, fetched.end) == (8, Position.after(numbers[1]))

    def test_a_record_larger_than_the_limit_is_taken_alone(self, stream: Stream) -> None:
        """Nothing may block a shard for ever."""
        stream.put(bytes(10 * 1024 * 1024), b"y")
        fetched = stream.fetch(limits=Limits(100, 1000))
        assert (fetched.records, fetched.size) == (1, 10 * 1024 * 1024)

    def test_an_aggregate_is_never_cut(self, stream: Stream) -> None:
        numbers = stream.put(AGGREGATE, b"plain")
        assert stream.fetch(limits=Limits(3, 1000)).records == 5
        numbers += stream.put(AGGREGATE)
        assert stream.fetch(limits=Limits(7, 1000)).end == Position.after(numbers[1])

    def test_a_cut_range_was_read_to_its_last_record(self, stream: Stream) -> None:
        """Behind and read-to are of the end of the range, not of the reply it was cut from."""
        stream.put(b"a", b"b", b"c")
        fetched = stream.fetch(limits=Limits(2, 100))
        assert fetched.read_to == START_MILLIS + 1000
        stream.behaves(page_records=10)
        by_bytes = stream.fetch(limits=Limits(100, 2))
        assert (by_bytes.read_to, by_bytes.behind) == (START_MILLIS + 1000, stream.now - START_MILLIS - 1000)

    def test_a_limit_within_a_millisecond_is_not_the_tip(self, stream: Stream) -> None:
        """Whatever the service says of it: a backfill would end before the rest of that millisecond was read."""
        stream.behaves(from_newest=True)
        first, second = (stream.memory.put_in(SHARD, payload) for payload in (b"1", b"2"))
        stream.now += 5000
        place, ranges = TRIM_HORIZON, []
        for _ in range(3):
            fetched = stream.fetch(place, Limits(1, 1000))
            place = fetched.end
            ranges.append((fetched.columns.sequence, fetched.read_to))
        assert ranges == [([first], START_MILLIS), ([second], START_MILLIS), ([], stream.now)]

    def test_a_reply_that_a_guess_cut_within_a_millisecond_is_gone_on_from(self, stream: Stream) -> None:
        """The mean size is only a guess at how many records fit."""
        numbers = [stream.memory.put_in(SHARD, payload) for payload in (bytes(500), bytes(500), b"1", b"2", b"3")]
        stream.now += 5000
        stream.fetch(limits=Limits(2, 10_000))
        stream.behaves(from_newest=True)
        fetched = stream.fetch(Position.after(numbers[1]), Limits(10, 900))
        assert (fetched.columns.sequence, fetched.read_to) == (numbers[2:], stream.now)

    def test_several_replies_make_one_range(self, stream: Stream) -> None:
        stream.behaves(page_records=2)
        stream.put(*[b"x"] * 7)
        assert stream.fetch(limits=Limits(5, 100)).records == 5

    def test_no_more_is_asked_for_than_will_fit(self, stream: Stream) -> None:
        """Once the size of a shard's records is known: what is thrown away counts against its two megabytes a second."""
        stream.put(*[b"x" * 1000] * 300)
        position = stream.fetch(limits=Limits(10_000, 100_000)).end
        asked: list[int] = []
        ask = stream.client.get_records
        stream.client.get_records = lambda shard, iterator, limit: asked.append(limit) or ask(shard, iterator, limit)  # type: ignore[method-assign, assignment]
        assert stream.fetch(position, Limits(10_000, 100_000)).records == 100
        assert asked == [111]


class TestSparse:
    def test_empty_replies_are_followed_to_the_records(self, stream: Stream) -> None:
        stream.put(b"a")
        stream.behaves(empty_pages=7)
        assert stream.fetch().columns.data == [b"a"]

    def test_empty_replies_are_followed_to_the_tip(self, stream: Stream) -> None:
        stream.behaves(empty_pages=7)
        assert stream.fetch().read_to == stream.now
        assert stream.client.calls.count("GetRecords") == 9  # seven empty ones, and two that say it is the tip

    @pytest.mark.parametrize(
        "position", [TRIM_HORIZON, Position.timestamp(START_MILLIS - 1000), None], ids=["from its beginning", "a time", "a record"]
    )
    def test_a_long_way_takes_several_ranges_and_nothing_is_walked_twice(self, stream: Stream, position: Position | None) -> None:
        """The other shards of the batch need not wait for it; the iterator that a range leaves keeps what was walked."""
        (former, last) = stream.put(b"a", b"b")
        position = position or Position.after(former)
        stream.behaves(empty_pages=3 * FOLLOWED - 1)
        ranges = [stream.fetch(position, read_to=START_MILLIS)]
        while not ranges[-1].records:
            fetched = ranges[-1]
            assert (fetched.start, fetched.end, fetched.behind > 0) == (position, position, True)
            ranges.append(stream.go_on(fetched))
        assert (len(ranges), ranges[-1].end) == (3, Position.after(last))
        assert stream.client.calls.count("GetRecords") == 3 * FOLLOWED
        assert stream.client.calls.count("GetShardIterator") == 1

    def test_a_long_way_whose_iterator_expired_is_walked_to_its_end(self, stream: Stream) -> None:
        """Batches may be farther apart than an iterator lives; the next one would begin again, for ever."""
        stream.put(b"a")
        stream.behaves(empty_pages=3 * FOLLOWED)
        fetched = stream.fetch()
        stream.now += 301_000
        assert stream.go_on(fetched).columns.data == [b"a"]

    def test_a_long_way_from_a_migrated_place_is_walked_to_its_end(self, stream: Stream) -> None:
        """Its first range has to tell whether records expired before anybody read them."""
        numbers = stream.put(b"a", b"b")
        stream.behaves(empty_pages=3 * FOLLOWED)
        assert stream.fetch(Position.after(numbers[0])).columns.data == [b"b"]


PAYLOADS = st.lists(
    st.one_of(st.binary(max_size=8), st.just(EMPTY), st.integers(1, 6).map(lambda n: aggregate([("k", b"%d" % i) for i in range(n)]))), max_size=25
)


@given(
    payloads=PAYLOADS,
    limits=st.builds(Limits, st.integers(1, 9), st.integers(1, 60)),
    page=st.integers(1, 6),
    empty=st.integers(0, 2),
    whole=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_ranges_are_a_chain_without_gap_or_overlap(payloads: list[bytes], limits: Limits, page: int, empty: int, *, whole: bool) -> None:
    stream = Stream()
    stream.behaves(page_records=page, empty_pages=empty, end_with_records=whole)
    numbers = stream.put(*payloads)
    stream.memory.split(SHARD)
    everything = stream.fetch(limits=Limits(10_000, 10_000_000))
    rows: list[tuple[str, int, bytes]] = []
    position = TRIM_HORIZON
    for _ in range(2 * len(payloads) + 2):
        fetched = stream.fetch(position, limits)
        assert stream.replay(fetched).columns == fetched.columns
        assert fetched.start == position
        rows += zip(fetched.columns.sequence, fetched.columns.sub, fetched.columns.data, strict=True)
        position = fetched.end
        if position == END:
            break
    assert position == END
    assert rows == list(zip(everything.columns.sequence, everything.columns.sub, everything.columns.data, strict=True))
    assert {row[0] for row in rows} <= set(numbers)


def test_user_records_that_hash_to_another_shard_are_delivered(stream: Stream) -> None:
    """After a split a producer with an old map puts them into one half: KCL drops the whole aggregate, and with it what nobody puts again."""
    half, _ = stream.memory.split(SHARD)
    (shard,) = (shard for shard in stream.memory.list_shards().shards if shard.id == half)
    users = [(f"key-{number}", b"%d" % number) for number in range(20)]
    hashed = [int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest()) for key, _ in users]
    assert {shard.starting_hash <= one <= shard.ending_hash for one in hashed} == {True, False}
    stream.memory.put_in(half, aggregate(users))
    fetched = stream.reader.fetch(FetchRequest(half, TRIM_HORIZON, 0), PLENTY)
    assert list(zip(fetched.columns.partition_key, fetched.columns.data, strict=True)) == users
