"""Where a range may end: inside no aggregate, at the end of a shard, and when the shard is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from reading.pages import AGGREGATE, EMPTY, at_the_tip, in_turn, refuse
from reading.stream import SHARD, START_MILLIS, Stream

from sluice_checkpoints.errors import ProtocolViolation, Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import StreamNotFound
from sluice_consumer.kinesis.client import Page, ShardNotFound
from sluice_consumer.shards.ranges import FetchRequest, Limits
from sluice_consumer.shards.reader import EndUnknown, ShardReader


class TestInsideAnAggregate:
    """A migrated position may stand in the middle of an aggregate; the rest of it belongs to the first range."""

    def test_the_rest_of_it_comes_first(self, stream: Stream) -> None:
        numbers = stream.put(b"before", AGGREGATE, b"after")
        fetched = stream.fetch(Position.after(numbers[1], 2))
        assert (fetched.columns.data, fetched.columns.sub) == ([b"3", b"4", b"after"], [3, 4, 0])
        assert fetched.columns.partition_key == ["user-3", "user-4", "key"]
        assert (fetched.first, fetched.end) == (numbers[1], Position.after(numbers[2]))

    def test_only_that_record_is_skipped_into(self, stream: Stream) -> None:
        numbers = stream.put(AGGREGATE, AGGREGATE)
        assert stream.fetch(Position.after(numbers[0], 3)).columns.sub == [4, 0, 1, 2, 3, 4]

    def test_a_plain_record_counts_as_sub_0(self, stream: Stream) -> None:
        """KCL stores 0 for every plain record."""
        numbers = stream.put(b"done", b"next")
        assert stream.fetch(Position.after(numbers[0], 0)).columns.data == [b"next"]

    def test_the_last_user_record_done_means_the_record_is(self, stream: Stream) -> None:
        (number,) = stream.put(AGGREGATE)
        fetched = stream.fetch(Position.after(number, 4))
        assert (fetched.records, fetched.first, fetched.end) == (0, None, Position.after(number))

    def test_an_aggregate_without_user_records_is_passed(self, stream: Stream) -> None:
        numbers = stream.put(EMPTY)
        fetched = stream.fetch()
        assert (fetched.records, fetched.first, fetched.end) == (0, None, Position.after(numbers[0]))

    def test_limits_count_from_the_first_user_record(self, stream: Stream) -> None:
        stream.put(EMPTY, EMPTY, b"a", b"b")
        assert stream.fetch(limits=Limits(1, 1)).columns.data == [b"a"]


class TestEndOfAShard:
    """NextShardIterator null is the end, and it brings the children or is none."""

    @pytest.mark.parametrize("end_with_records", [True, False])
    @pytest.mark.parametrize("child_shards", [True, False])
    def test_the_end_and_the_children_come_together(self, stream: Stream, *, child_shards: bool, end_with_records: bool) -> None:
        stream.behaves(child_shards=child_shards, end_with_records=end_with_records)
        stream.put(b"last")
        low, high = stream.memory.split(SHARD)
        first = stream.fetch()
        fetched = first if first.end == END else stream.fetch(first.end)
        assert (first.columns.data, fetched.end) == ([b"last"], END)
        assert [(child.id, child.parents) for child in fetched.children or ()] == [(low, {SHARD}), (high, {SHARD})]

    def test_a_merged_child_names_both_parents(self, stream: Stream) -> None:
        low, high = stream.memory.split(SHARD)
        merged = stream.memory.merge(low, high)
        fetched = stream.reader.fetch(FetchRequest(low, TRIM_HORIZON), Limits(10, 10))
        assert [(child.id, child.parents) for child in fetched.children or ()] == [(merged, {low, high})]

    def test_a_limit_before_the_end_is_not_the_end(self, stream: Stream) -> None:
        stream.behaves(end_with_records=True)
        numbers = stream.put(b"aa", b"bb")
        stream.memory.split(SHARD)
        fetched = stream.fetch(limits=Limits(10, 3))
        assert (fetched.end, fetched.children) == (Position.after(numbers[0]), None)
        assert stream.fetch(fetched.end).end == END

    def test_an_end_without_known_children_is_an_error(self, stream: Stream) -> None:
        low, high = stream.memory.split(SHARD)
        stream.behaves(child_shards=False)
        del stream.memory.shards[low], stream.memory.shards[high]
        with pytest.raises(EndUnknown, match=SHARD):
            stream.fetch()

    def test_an_end_that_takes_one_more_empty_reply_is_found(self, stream: Stream) -> None:
        """A closed shard may say "nothing, at the tip" first. Left at that, every later range would begin there again."""
        (number,) = stream.put(b"a")
        stream.memory.split(SHARD)
        real = stream.client.get_records
        stream.client.get_records = in_turn(at_the_tip, real, real)  # type: ignore[method-assign]
        assert stream.fetch(Position.after(number), read_to=stream.now).end == END

    def test_children_of_another_stream_of_the_same_name_are_refused(self, stream: Stream) -> None:
        stream.behaves(child_shards=False)
        stream.memory.split(SHARD)
        stream.reader = ShardReader(stream.client, stream.memory, replace(stream.memory.describe(), created_millis=1))
        with pytest.raises(Refused, match="deleted and created again"):
            stream.fetch()

    @pytest.mark.parametrize("position", [TRIM_HORIZON, Position.timestamp(START_MILLIS)], ids=str)
    @pytest.mark.parametrize("closed", [False, True], ids=["records", "an end"])
    def test_what_no_sequence_number_vouches_for_is_refused_of_another_stream(self, stream: Stream, position: Position, *, closed: bool) -> None:
        """A shard that was never read has a place in every stream of that name."""
        if closed:
            stream.memory.split(SHARD)
        else:
            stream.put(b"of another stream")
        stream.reader = ShardReader(stream.client, stream.memory, replace(stream.memory.describe(), created_millis=1))
        with pytest.raises(Refused, match="deleted and created again"):
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
        with pytest.raises(ProtocolViolation):
            stream.fetch(END)


class TestAgeOfChildren:
    """The row of a shard that ended says when it was open: its children's records are younger, and expire by that."""

    @staticmethod
    def read_late(stream: Stream, *payloads: bytes) -> int:
        """A shard is closed after its last record, and read to the tip hours later. When that record arrived."""
        stream.put(*payloads)
        closed = stream.now - 1000
        stream.memory.split(SHARD)
        stream.now += 20 * 3_600_000
        return closed

    @pytest.mark.parametrize("end_with_records", [True, False])
    @pytest.mark.parametrize("last", [b"last", EMPTY], ids=["a record", "an aggregate of none"])
    def test_a_closed_shard_that_came_to_the_tip_with_records_was_open_when_the_last_one_arrived(
        self, stream: Stream, *, end_with_records: bool, last: bytes
    ) -> None:
        """It had yet to say its end. When it was read says nothing: it may have been closed for as long as it was not read."""
        arrived = self.read_late(stream, b"first", last)
        stream.behaves(end_with_records=end_with_records)
        first = stream.fetch()
        assert first.end == END or first.read_to == stream.now  # of its own records nothing is older
        fetched = first if first.end == END else stream.go_on(first)
        assert (fetched.end, fetched.read_to) == (END, arrived)

    def test_one_whose_last_record_has_expired_since_may_have_been_closed_as_long_ago(self, stream: Stream) -> None:
        """Its children's first records may have expired with it."""
        self.read_late(stream, b"last")
        first = stream.fetch()
        stream.now += 10 * 3_600_000
        stream.memory.expire()
        fetched = stream.go_on(first)
        assert (fetched.end, fetched.read_to) == (END, stream.now - stream.memory.retention_millis)

    def test_one_that_has_left_the_stream_was_closed_as_long_ago(self, stream: Stream) -> None:
        """It goes when its last record could have expired."""
        self.read_late(stream, b"last")
        first = stream.fetch()
        stream.now += 10 * 3_600_000
        stream.memory.expire_shard(SHARD)
        fetched = stream.go_on(first)
        assert (fetched.end, fetched.read_to) == (END, stream.now - stream.memory.retention_millis)

    @pytest.mark.parametrize("expires", [False, True], ids=["it is there", "it has expired"])
    def test_one_whose_last_record_another_consumer_came_to_was_open_when_that_arrived(self, stream: Stream, *, expires: bool) -> None:
        """Nobody has read after a migrated position, so no time is known of it."""
        arrived = self.read_late(stream, b"last")
        (number,) = (record.sequence for record in stream.memory.shards[SHARD].records)
        stream.now += 10 * 3_600_000 if expires else 0
        stream.memory.expire()
        fetched = stream.fetch(Position.after(number))
        assert (fetched.end, fetched.read_to) == (END, stream.now - stream.memory.retention_millis if expires else arrived)

    def test_one_that_brought_nothing_at_the_tip_was_open_then(self, stream: Stream) -> None:
        """Two replies said so. No record has to be asked for, however old the last one is."""
        (number,) = stream.put(b"last")
        stream.now += 20 * 3_600_000
        seen = stream.fetch(Position.after(number)).read_to
        stream.memory.split(SHARD)
        stream.now += 3_600_000
        stream.client.calls.clear()
        fetched = stream.reader.fetch(FetchRequest(SHARD, Position.after(number), seen, was_open=True), Limits(10, 1000))
        assert (fetched.end, fetched.read_to) == (END, seen)
        assert stream.client.calls == ["GetShardIterator", "GetRecords"]

    def test_a_shard_may_have_been_closed_between_the_two_replies(self, stream: Stream) -> None:
        (number,) = stream.put(b"last")
        real = stream.client.get_records

        def slow(*call: Any) -> Page:
            stream.now += 30_000
            return real(*call)

        stream.client.get_records = slow  # type: ignore[method-assign, assignment]
        began = stream.now
        assert stream.fetch(Position.after(number), read_to=began).read_to == began + 30_000
        assert stream.now == began + 60_000


class TestResourceNotFound:
    def test_a_shard_that_is_listed_has_not_ended(self, stream: Stream) -> None:
        """Some host does not know it yet."""
        stream.client.fail(ShardNotFound("no such shard"))
        with pytest.raises(ShardNotFound, match="is in the list of shards"):
            stream.fetch()

    def test_a_shard_that_is_not_listed_has_expired(self, stream: Stream) -> None:
        numbers = stream.put(b"a")
        low, high = stream.memory.split(SHARD)
        stream.memory.expire_shard(SHARD)
        fetched = stream.fetch(Position.after(numbers[0]), read_to=77)
        assert (fetched.end, fetched.records, fetched.read_to) == (END, 0, 77)
        assert [child.id for child in fetched.children or ()] == [low, high]
        assert fetched.note is not None
        assert numbers[0] in fetched.note
        assert "77" in fetched.note

    def test_another_stream_of_the_same_name_is_refused(self, stream: Stream) -> None:
        stream.now += 1
        stream.memory.recreate(shards=2)
        stream.client.fail(ShardNotFound("no such shard"))
        with pytest.raises(Refused, match="deleted and created again"):
            stream.fetch()

    def test_a_stream_that_is_gone_is_named(self, stream: Stream) -> None:
        stream.memory.exists = False
        with pytest.raises(StreamNotFound, match="orders"):
            stream.fetch()

    def test_what_was_read_before_it_vanished_is_a_range(self, stream: Stream) -> None:
        stream.behaves(page_records=1)
        numbers = stream.put(b"a", b"b")
        real = stream.client.get_records
        stream.client.get_records = in_turn(real, refuse)  # type: ignore[method-assign]
        fetched = stream.fetch()
        assert (fetched.columns.data, fetched.end) == ([b"a"], Position.after(numbers[0]))
