"""A new range holds what comes after its position, ends on a whole Kinesis record, and says truly how far it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading.kpl import aggregate, field_bytes, seal
from reading.stream import SHARD, START_MILLIS, Stream

from sluice_checkpoints.errors import ProtocolViolation, Refused, ServiceUnavailable
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import StreamNotFound
from sluice_consumer.kinesis.client import IteratorExpired, Page, Records, ShardNotFound
from sluice_consumer.shards.ranges import FetchRequest, Limits
from sluice_consumer.shards.reader import FOLLOWED, EndUnknown, ShardReader

AGGREGATE = aggregate([(f"user-{i}", b"%d" % i) for i in range(5)])
EMPTY = seal(field_bytes(1, b"key"))  # keys, and no user record


def refuse(*_call: object) -> Page:
    """The shard is gone."""
    raise ShardNotFound("no such shard")


def in_turn(*answers: Callable[..., Page]) -> Callable[..., Page]:
    """One call after the other is answered by each of them."""
    left = iter(answers)

    def answer(*call: object) -> Page:
        return next(left)(*call)

    return answer


def at_the_tip(_shard: str, iterator: str, _limit: int) -> Page:
    """Nothing new, and no end."""
    return Page(Records(), iterator, 0, None, 0)


def expire(*_call: object) -> Page:
    """The iterator is too old."""
    raise IteratorExpired("expired")


def test_a_range_holds_all_records_up_to_the_tip(stream: Stream) -> None:
    """Keys, payloads, numbers and arrival times, in order."""
    numbers = stream.put(b"a", b"b", b"c")
    fetched = stream.fetch()
    assert fetched.columns.data == [b"a", b"b", b"c"]
    assert fetched.columns.sequence == numbers
    assert fetched.columns.partition_key == ["key"] * 3
    assert fetched.columns.sub == [0, 0, 0]
    assert fetched.columns.arrival_millis == [START_MILLIS, START_MILLIS + 1000, START_MILLIS + 2000]
    assert (fetched.start, fetched.end, fetched.first) == (TRIM_HORIZON, Position.after(numbers[2]), numbers[0])
    assert (fetched.records, fetched.bytes, fetched.behind_millis, fetched.children) == (3, 3, 0, None)
    assert fetched.read_to_millis == stream.now


def test_the_next_range_begins_where_one_ended(stream: Stream) -> None:
    """No record twice and none left out."""
    stream.put(b"a", b"b")
    end = stream.fetch().end
    stream.put(b"c")
    assert stream.fetch(end).columns.data == [b"c"]


def test_an_empty_range_stays_where_it_was(stream: Stream) -> None:
    """At the beginning, and after a record."""
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
    """From then on the place is exact."""
    numbers = stream.put(b"old", b"new")
    fetched = stream.fetch(Position.timestamp(START_MILLIS + 500))
    assert (fetched.columns.data, fetched.end) == ([b"new"], Position.after(numbers[1]))


class TestGoingOn:
    """Whoever reads a shard's next range goes on with the iterator that the last one left."""

    def test_no_new_iterator_is_asked_for(self, stream: Stream) -> None:
        """From the end of the last range, whose last reply was taken whole."""
        stream.put(b"a")
        first = stream.fetch()
        stream.put(b"b")
        assert stream.go_on(first).columns.data == [b"b"]
        assert stream.client.calls.count("GetShardIterator") == 1

    def test_an_empty_range_leaves_one_too(self, stream: Stream) -> None:
        """A shard may be idle beside busy ones for a while."""
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
        """Nothing comes after it."""
        stream.put(b"a")
        stream.twin.split(SHARD)
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
        """It is not the iterator then."""
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
    """Limits count from the first record and cut between Kinesis records."""

    def test_records(self, stream: Stream) -> None:
        """Exactly as many as allowed."""
        numbers = stream.put(b"a", b"b", b"c")
        fetched = stream.fetch(limits=Limits(2, 100))
        assert (fetched.columns.data, fetched.end) == ([b"a", b"b"], Position.after(numbers[1]))

    def test_bytes(self, stream: Stream) -> None:
        """What does not fit any more waits for the next range."""
        numbers = stream.put(b"aaaa", b"bbbb", b"cccc")
        fetched = stream.fetch(limits=Limits(100, 11))
        assert (fetched.bytes, fetched.end) == (8, Position.after(numbers[1]))

    def test_a_record_larger_than_the_limit_is_taken_alone(self, stream: Stream) -> None:
        """Nothing may block a shard for ever."""
        stream.put(bytes(10 * 1024 * 1024), b"y")
        fetched = stream.fetch(limits=Limits(100, 1000))
        assert (fetched.records, fetched.bytes) == (1, 10 * 1024 * 1024)

    def test_an_aggregate_is_never_cut(self, stream: Stream) -> None:
        """The whole of it is taken where one would have been enough, or none of it."""
        numbers = stream.put(AGGREGATE, b"plain")
        assert stream.fetch(limits=Limits(3, 1000)).records == 5
        numbers += stream.put(AGGREGATE)
        assert stream.fetch(limits=Limits(7, 1000)).end == Position.after(numbers[1])

    def test_a_cut_range_was_read_to_its_last_record(self, stream: Stream) -> None:
        """Behind and read-to are of the end of the range, not of the reply it was cut from."""
        stream.put(b"a", b"b", b"c")
        fetched = stream.fetch(limits=Limits(2, 100))
        assert fetched.read_to_millis == START_MILLIS + 1000
        stream.behaves(page_records=10)
        by_bytes = stream.fetch(limits=Limits(100, 2))
        assert (by_bytes.read_to_millis, by_bytes.behind_millis) == (START_MILLIS + 1000, stream.now - START_MILLIS - 1000)

    def test_a_limit_within_a_millisecond_is_not_the_tip(self, stream: Stream) -> None:
        """Whatever the service says of it: a backfill would end before the rest of that millisecond was read."""
        stream.behaves(from_newest=True)
        first, second = (stream.twin.put_in(SHARD, payload) for payload in (b"1", b"2"))
        stream.now += 5000
        place, ranges = TRIM_HORIZON, []
        for _ in range(3):
            fetched = stream.fetch(place, Limits(1, 1000))
            place = fetched.end
            ranges.append((fetched.columns.sequence, fetched.read_to_millis))
        assert ranges == [([first], START_MILLIS), ([second], START_MILLIS), ([], stream.now)]

    def test_a_reply_that_a_guess_cut_within_a_millisecond_is_gone_on_from(self, stream: Stream) -> None:
        """The mean size is only a guess at how many records fit."""
        numbers = [stream.twin.put_in(SHARD, payload) for payload in (bytes(500), bytes(500), b"1", b"2", b"3")]
        stream.now += 5000
        stream.fetch(limits=Limits(2, 10_000))
        stream.behaves(from_newest=True)
        fetched = stream.fetch(Position.after(numbers[1]), Limits(10, 900))
        assert (fetched.columns.sequence, fetched.read_to_millis) == (numbers[2:], stream.now)

    def test_several_replies_make_one_range(self, stream: Stream) -> None:
        """A limit is of the range, not of a call."""
        stream.behaves(page_records=2)
        stream.put(*[b"x"] * 7)
        assert stream.fetch(limits=Limits(5, 100)).records == 5

    def test_no_more_is_asked_for_than_will_fit(self, stream: Stream) -> None:
        """Once the size of a shard's records is known: what is thrown away counts against its two megabytes a second."""
        stream.put(*[b"x" * 1000] * 300)
        position = stream.fetch(limits=Limits(10_000, 100_000)).end
        asked: list[int] = []
        ask = stream.client.get_records
        stream.client.get_records = lambda shard, iterator, limit: asked.append(limit) or ask(shard, iterator, limit)  # type: ignore[method-assign]
        assert stream.fetch(position, Limits(10_000, 100_000)).records == 100
        assert asked == [111]


class TestSparse:
    """Empty replies far from the tip are no answer."""

    def test_empty_replies_are_followed_to_the_records(self, stream: Stream) -> None:
        """However many there are."""
        stream.put(b"a")
        stream.behaves(empty_pages=7)
        assert stream.fetch().columns.data == [b"a"]

    def test_empty_replies_are_followed_to_the_tip(self, stream: Stream) -> None:
        """The range is empty only when the tip was reached."""
        stream.behaves(empty_pages=7)
        assert stream.fetch().read_to_millis == stream.now
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
            assert (fetched.start, fetched.end, fetched.behind_millis > 0) == (position, position, True)
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


class TestInsideAnAggregate:
    """A migrated position may stand in the middle of an aggregate; the rest of it belongs to the first range."""

    def test_the_rest_of_it_comes_first(self, stream: Stream) -> None:
        """And the range ends on a whole record again."""
        numbers = stream.put(b"before", AGGREGATE, b"after")
        fetched = stream.fetch(Position.after(numbers[1], 2))
        assert (fetched.columns.data, fetched.columns.sub) == ([b"3", b"4", b"after"], [3, 4, 0])
        assert fetched.columns.partition_key == ["user-3", "user-4", "key"]
        assert (fetched.first, fetched.end) == (numbers[1], Position.after(numbers[2]))

    def test_only_that_record_is_skipped_into(self, stream: Stream) -> None:
        """Later aggregates are whole."""
        numbers = stream.put(AGGREGATE, AGGREGATE)
        assert stream.fetch(Position.after(numbers[0], 3)).columns.sub == [4, 0, 1, 2, 3, 4]

    def test_a_plain_record_counts_as_sub_0(self, stream: Stream) -> None:
        """KCL stores 0 for every plain record."""
        numbers = stream.put(b"done", b"next")
        assert stream.fetch(Position.after(numbers[0], 0)).columns.data == [b"next"]

    def test_the_last_user_record_done_means_the_record_is(self, stream: Stream) -> None:
        """The position moves on, though there is no record."""
        (number,) = stream.put(AGGREGATE)
        fetched = stream.fetch(Position.after(number, 4))
        assert (fetched.records, fetched.first, fetched.end) == (0, None, Position.after(number))

    def test_an_aggregate_without_user_records_is_passed(self, stream: Stream) -> None:
        """Its place is taken, and nothing comes of it."""
        numbers = stream.put(EMPTY)
        fetched = stream.fetch()
        assert (fetched.records, fetched.first, fetched.end) == (0, None, Position.after(numbers[0]))

    def test_limits_count_from_the_first_user_record(self, stream: Stream) -> None:
        """Aggregates without any do not fill a range."""
        stream.put(EMPTY, EMPTY, b"a", b"b")
        assert stream.fetch(limits=Limits(1, 1)).columns.data == [b"a"]


class TestEndOfAShard:
    """NextShardIterator null is the end, and it brings the children or is none."""

    @pytest.mark.parametrize("end_with_records", [True, False])
    @pytest.mark.parametrize("child_shards", [True, False])
    def test_the_end_and_the_children_come_together(self, stream: Stream, *, child_shards: bool, end_with_records: bool) -> None:
        """From the reply, or from ListShards where the reply has none."""
        stream.behaves(child_shards=child_shards, end_with_records=end_with_records)
        stream.put(b"last")
        low, high = stream.twin.split(SHARD)
        first = stream.fetch()
        fetched = first if first.end == END else stream.fetch(first.end)
        assert (first.columns.data, fetched.end) == ([b"last"], END)
        assert [(child.id, child.parents) for child in fetched.children or ()] == [(low, {SHARD}), (high, {SHARD})]

    def test_a_merged_child_names_both_parents(self, stream: Stream) -> None:
        """So that it waits for both."""
        low, high = stream.twin.split(SHARD)
        merged = stream.twin.merge(low, high)
        fetched = stream.reader.fetch(FetchRequest(low, TRIM_HORIZON), Limits(10, 10))
        assert [(child.id, child.parents) for child in fetched.children or ()] == [(merged, {low, high})]

    def test_a_limit_before_the_end_is_not_the_end(self, stream: Stream) -> None:
        """END is bound with the last records, never before them."""
        stream.behaves(end_with_records=True)
        numbers = stream.put(b"aa", b"bb")
        stream.twin.split(SHARD)
        fetched = stream.fetch(limits=Limits(10, 3))
        assert (fetched.end, fetched.children) == (Position.after(numbers[0]), None)
        assert stream.fetch(fetched.end).end == END

    def test_an_end_without_known_children_is_an_error(self, stream: Stream) -> None:
        """Neither the reply nor ListShards: nothing may be bound."""
        low, high = stream.twin.split(SHARD)
        stream.behaves(child_shards=False)
        del stream.twin.shards[low], stream.twin.shards[high]
        with pytest.raises(EndUnknown, match=SHARD):
            stream.fetch()

    def test_an_end_that_takes_one_more_empty_reply_is_found(self, stream: Stream) -> None:
        """A closed shard may say "nothing, at the tip" first. Left at that, every later range would begin there again."""
        (number,) = stream.put(b"a")
        stream.twin.split(SHARD)
        real = stream.client.get_records
        stream.client.get_records = in_turn(at_the_tip, real)  # type: ignore[method-assign]
        assert stream.fetch(Position.after(number), read_to=stream.now).end == END

    def test_children_of_another_stream_of_the_same_name_are_refused(self, stream: Stream) -> None:
        """Ids of shards repeat."""
        stream.behaves(child_shards=False)
        stream.twin.split(SHARD)
        stream.reader = ShardReader(stream.client, stream.twin, replace(stream.twin.describe(), created_millis=1))
        with pytest.raises(Refused, match="deleted and made again"):
            stream.fetch()

    @pytest.mark.parametrize("position", [TRIM_HORIZON, Position.timestamp(START_MILLIS)], ids=str)
    @pytest.mark.parametrize("closed", [False, True], ids=["records", "an end"])
    def test_what_no_sequence_number_vouches_for_is_refused_of_another_stream(self, stream: Stream, position: Position, *, closed: bool) -> None:
        """A shard that was never read has a place in every stream of that name."""
        if closed:
            stream.twin.split(SHARD)
        else:
            stream.put(b"of another stream")
        stream.reader = ShardReader(stream.client, stream.twin, replace(stream.twin.describe(), created_millis=1))
        with pytest.raises(Refused, match="deleted and made again"):
            stream.fetch(position)

    def test_who_the_stream_is_is_asked_only_of_a_first_range(self, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
        """Once in the epoch of a shard; from then on its sequence numbers are no other stream's."""
        asked: list[None] = []
        monkeypatch.setattr(stream.reader, "_same_stream", lambda: asked.append(None))
        stream.fetch()
        numbers = stream.put(b"a", b"b")
        stream.fetch(limits=Limits(1, 1))
        stream.fetch(Position.after(numbers[0]))
        assert len(asked) == 1

    def test_nothing_is_read_after_the_end(self, stream: Stream) -> None:
        """A plan that asks for it is wrong."""
        with pytest.raises(ProtocolViolation):
            stream.fetch(END)


class TestResourceNotFound:
    """It is not an end by itself."""

    def test_a_shard_that_is_listed_has_not_ended(self, stream: Stream) -> None:
        """Some host does not know it yet."""
        stream.client.fail(ShardNotFound("no such shard"))
        with pytest.raises(ShardNotFound, match="is listed"):
            stream.fetch()

    def test_a_shard_that_is_not_listed_has_expired(self, stream: Stream) -> None:
        """END with the listed children, and what may be lost is said."""
        numbers = stream.put(b"a")
        low, high = stream.twin.split(SHARD)
        stream.twin.expire_shard(SHARD)
        fetched = stream.fetch(Position.after(numbers[0]), read_to=77)
        assert (fetched.end, fetched.records, fetched.read_to_millis) == (END, 0, 77)
        assert [child.id for child in fetched.children or ()] == [low, high]
        assert fetched.possible_loss is not None
        assert numbers[0] in fetched.possible_loss
        assert "77" in fetched.possible_loss

    def test_another_stream_of_the_same_name_is_refused(self, stream: Stream) -> None:
        """Its shards have nothing to do with ours, though their ids are the same."""
        stream.now += 1
        stream.twin.recreate(shards=2)
        stream.client.fail(ShardNotFound("no such shard"))
        with pytest.raises(Refused, match="deleted and made again"):
            stream.fetch()

    def test_a_stream_that_is_gone_is_named(self, stream: Stream) -> None:
        """Not an expired shard."""
        stream.twin.exists = False
        with pytest.raises(StreamNotFound, match="orders"):
            stream.fetch()

    def test_what_was_read_before_it_vanished_is_a_range(self, stream: Stream) -> None:
        """And is no end: the next range finds out more."""
        stream.behaves(page_records=1)
        numbers = stream.put(b"a", b"b")
        real = stream.client.get_records
        stream.client.get_records = in_turn(real, refuse)  # type: ignore[method-assign]
        fetched = stream.fetch()
        assert (fetched.columns.data, fetched.end) == ([b"a"], Position.after(numbers[0]))


class TestFailures:
    """What passes is not seen, what does not is passed on."""

    def test_an_expired_iterator_is_renewed_from_the_last_record(self, stream: Stream) -> None:
        """Nothing twice, nothing left out."""
        stream.behaves(page_records=2)
        stream.put(*[b"%d" % i for i in range(6)])
        real = stream.client.get_records
        stream.client.get_records = in_turn(real, expire, real, expire, expire, real, real)  # type: ignore[method-assign]
        assert stream.fetch().columns.data == [b"0", b"1", b"2", b"3", b"4", b"5"]

    def test_iterators_that_are_always_expired_are_given_up(self, stream: Stream) -> None:
        """It is not their age, then."""
        stream.client.get_records = expire  # type: ignore[method-assign]
        with pytest.raises(IteratorExpired):
            stream.fetch()
        assert stream.client.calls.count("GetShardIterator") == 4

    def test_no_answer_is_an_error(self, stream: Stream) -> None:
        """Not an empty range."""
        stream.client.fail(ServiceUnavailable("throttled for a minute"))
        with pytest.raises(ServiceUnavailable):
            stream.fetch()


class TestCheckpoint:
    """Where another consumer's place is gone on from, its last record tells whether those after it are still there."""

    @pytest.mark.parametrize("sub", [None, 2])
    def test_it_is_whole_if_the_record_is_still_there(self, stream: Stream, sub: int | None) -> None:
        """However old it is; a place may lie inside of it."""
        numbers = stream.put(b"long ago", AGGREGATE, b"next")
        stream.now += 9 * stream.twin.retention_millis
        fetched = stream.fetch(Position.after(numbers[1], sub))
        assert (fetched.possible_loss, fetched.start) == (None, Position.after(numbers[1], sub))
        assert fetched.columns.data == ([b"3", b"4"] if sub else []) + [b"next"]

    @pytest.mark.parametrize("empty_pages", [0, 2])
    def test_a_record_that_is_gone_is_said(self, stream: Stream, empty_pages: int) -> None:
        """Far from the tip the service may say nothing for a while first."""
        number, *_ = stream.put(b"read", b"lost")
        stream.now += stream.twin.retention_millis
        stream.put(b"kept", b"kept too")
        stream.twin.expire()
        stream.behaves(empty_pages=empty_pages)
        fetched = stream.fetch(Position.after(number), Limits(1, 100))
        assert fetched.columns.data == [b"kept"]
        assert (
            fetched.possible_loss
            == f"{SHARD} holds nothing any more that its former consumer had read: what came after {fetched.start} may have expired"
        )
        assert stream.go_on(fetched).possible_loss is None

    def test_it_is_looked_for_although_an_iterator_expires(self, stream: Stream) -> None:
        """The next one begins with it, too."""
        number, _ = stream.put(b"read", b"unread")
        real = stream.client.get_records
        stream.client.get_records = in_turn(expire, real, real)  # type: ignore[method-assign]
        fetched = stream.fetch(Position.after(number), Limits(1, 100))
        assert (fetched.columns.data, fetched.possible_loss) == ([b"unread"], None)

    def test_a_shard_that_ended_and_holds_nothing_is_suspect(self, stream: Stream) -> None:
        """The former consumer had not read to its end."""
        (number,) = stream.put(b"read")
        stream.twin.split(SHARD)
        stream.now += 2 * stream.twin.retention_millis
        stream.twin.expire()
        fetched = stream.fetch(Position.after(number))
        assert (fetched.end, fetched.records) == (END, 0)
        assert "holds nothing any more" in str(fetched.possible_loss)

    @pytest.mark.parametrize("closed", [True, False])
    @pytest.mark.parametrize("empty_pages", [0, 2])
    def test_a_place_at_no_record_is_whole_if_an_older_record_is_there(self, stream: Stream, empty_pages: int, *, closed: bool) -> None:
        """KCL's checkpoint(number) takes any number between two records."""
        older, number = stream.put(b"older", b"not put after all")
        held = stream.twin.shards[SHARD]
        del held.records[1], held.numbers[1]
        if closed:
            stream.twin.split(SHARD)
        else:
            stream.put(b"unread")
        stream.behaves(empty_pages=empty_pages)
        fetched = stream.fetch(Position.after(number))
        assert (fetched.possible_loss, fetched.columns.data) == (None, [] if closed else [b"unread"])
        assert int(older) < int(number)

    def test_an_open_shard_that_holds_nothing_says_nothing(self, stream: Stream) -> None:
        """A fleet has many that nobody writes to, and none of them has lost anything."""
        (number,) = stream.put(b"read")
        stream.now += 2 * stream.twin.retention_millis
        stream.twin.expire()
        fetched = stream.fetch(Position.after(number))
        assert (fetched.possible_loss, fetched.records, fetched.end) == (None, 0, Position.after(number))


class TestRetention:
    """Records that expired before they were read are never skipped silently."""

    def test_a_place_read_longer_ago_than_retention_is_suspect(self, stream: Stream) -> None:
        """What is left is read from its beginning, and the note says what may be missing."""
        numbers = stream.put(b"read", b"lost", b"lost too")
        read_to = stream.now
        stream.now += stream.twin.retention_millis + 1000
        kept = stream.put(b"kept")
        stream.twin.expire()
        fetched = stream.fetch(Position.after(numbers[0]), read_to=read_to)
        assert (fetched.columns.sequence, fetched.end) == (kept, Position.after(kept[0]))
        assert fetched.possible_loss is not None
        assert "may have expired" in fetched.possible_loss

    def test_a_place_whose_time_ran_out_within_this_second_is_suspect(self, stream: Stream) -> None:
        """The service tells whole seconds: what expired a moment ago is a whole retention old by them, and no more."""
        numbers = stream.put(b"read")
        read_to = stream.now
        stream.put(b"lost")
        stream.now = read_to + stream.twin.retention_millis + 1
        stream.twin.expire()
        assert stream.fetch(Position.after(numbers[0]), read_to=read_to).possible_loss is not None

    def test_an_idle_shard_has_lost_nothing(self, stream: Stream) -> None:
        """Its last record is long gone, its reply a whole retention behind, and it was read a minute ago."""
        numbers = stream.put(b"read")
        stream.now += 3 * stream.twin.retention_millis
        stream.twin.put_in(SHARD, b"gone as well, but read")
        position = stream.fetch(Position.after(numbers[0])).end
        stream.now += 2 * stream.twin.retention_millis
        stream.twin.expire()
        fetched = stream.fetch(position, read_to=stream.now - 60_000)
        assert (fetched.possible_loss, fetched.records, fetched.end) == (None, 0, position)

    def test_a_place_without_a_reading_time_is_not_suspect(self, stream: Stream) -> None:
        """A shard that was never read: nobody knows."""
        stream.now += 3 * stream.twin.retention_millis
        assert stream.fetch().possible_loss is None

    @pytest.mark.parametrize(("days", "suspect"), [(0.99, False), (1.01, True)])
    def test_a_place_in_time_is_suspect_from_that_time_on(self, stream: Stream, days: float, *, suspect: bool) -> None:
        """A consumer that began at LATEST, and did not run for a day, has lost what came then."""
        began = stream.now
        stream.put(b"lost")
        stream.now += round(days * stream.twin.retention_millis)
        stream.twin.expire()
        assert (stream.fetch(Position.timestamp(began)).possible_loss is not None) == suspect

    def test_an_ended_shard_was_read_up_to_its_last_record(self, stream: Stream) -> None:
        """When it was closed nobody tells; its children begin then, and may have been waiting for as long."""
        stream.put(b"last")
        stream.twin.split(SHARD)
        stream.now += 3_600_000
        stream.behaves(end_with_records=True)
        assert (stream.fetch().end, stream.fetch().read_to_millis) == (END, START_MILLIS)

    def test_beginning_again_repeats_nothing(self, stream: Stream) -> None:
        """Retention is lazy: records older than the place may still be there."""
        numbers = stream.put(b"read", b"read too", b"unread")
        stream.behaves(empty_pages=1)
        read_to = stream.now
        stream.now += stream.twin.retention_millis + 1000
        fetched = stream.fetch(Position.after(numbers[1]), read_to=read_to)
        assert fetched.columns.data == [b"unread"]
        assert fetched.possible_loss is not None

    def test_nothing_from_before_a_time_comes_though_it_is_still_there(self, stream: Stream) -> None:
        """Retention is lazy, and a consumer that began at LATEST is owed nothing older."""
        stream.put(b"before")
        began = stream.now
        stream.put(b"since")
        stream.behaves(empty_pages=1)
        stream.now += stream.twin.retention_millis + 1000
        fetched = stream.fetch(Position.timestamp(began))
        assert fetched.columns.data == [b"since"]
        assert fetched.possible_loss is not None

    def test_an_unknown_time_changes_nothing(self, stream: Stream) -> None:
        """A proxy on the way took the Date header."""
        stream.client.get_records = at_the_tip  # type: ignore[method-assign]
        fetched = stream.fetch(Position.timestamp(5), read_to=77)
        assert (fetched.end, fetched.read_to_millis, fetched.possible_loss) == (Position.timestamp(5), 77, None)

    def test_read_to_never_goes_back(self, stream: Stream) -> None:
        """Clocks of two hosts of the service may differ a little."""
        assert stream.fetch(read_to=stream.now + 5000).read_to_millis == stream.now + 5000


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
    """Whatever the limits and the service's manners: every range, and every replay of it, adds up to what was put; each ends at END."""
    stream = Stream()
    stream.behaves(page_records=page, empty_pages=empty, end_with_records=whole)
    numbers = stream.put(*payloads)
    stream.twin.split(SHARD)
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
