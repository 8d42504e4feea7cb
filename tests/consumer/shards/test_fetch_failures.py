"""A fetch that fails, has to stop, or meets the end of retention: what was read counts, and nothing is skipped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading.pages import AGGREGATE, at_the_tip, expire, in_turn
from reading.stream import SHARD, START_MILLIS, Stream

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_consumer.kinesis.client import IteratorExpired
from sluice_consumer.shards.ranges import Fetched, FetchRequest, Limits
from sluice_consumer.shards.reader import ShardReader


class TestFailures:
    def test_an_expired_iterator_is_renewed_from_the_last_record(self, stream: Stream) -> None:
        stream.behaves(page_records=2)
        stream.put(*[b"%d" % i for i in range(6)])
        real = stream.client.get_records
        stream.client.get_records = in_turn(real, expire, real, expire, expire, real, real)  # type: ignore[method-assign]
        assert stream.fetch().columns.data == [b"0", b"1", b"2", b"3", b"4", b"5"]

    def test_iterators_that_are_always_expired_are_given_up(self, stream: Stream) -> None:
        stream.client.get_records = expire  # type: ignore[method-assign, assignment]
        with pytest.raises(IteratorExpired):
            stream.fetch()
        assert stream.client.calls.count("GetShardIterator") == 4

    def test_no_answer_is_an_error(self, stream: Stream) -> None:
        stream.client.fail(ServiceUnavailable("throttled for a minute"))
        with pytest.raises(ServiceUnavailable):
            stream.fetch()


class TestCheckpoint:
    """Where another consumer's place is gone on from, its last record tells whether those after it are still there."""

    @pytest.mark.parametrize("sub", [None, 2])
    def test_it_is_whole_if_the_record_is_still_there(self, stream: Stream, sub: int | None) -> None:
        numbers = stream.put(b"long ago", AGGREGATE, b"next")
        stream.now += 9 * stream.memory.retention_millis
        fetched = stream.fetch(Position.after(numbers[1], sub))
        assert (fetched.note, fetched.start) == (None, Position.after(numbers[1], sub))
        assert fetched.columns.data == ([b"3", b"4"] if sub else []) + [b"next"]

    @pytest.mark.parametrize("empty_pages", [0, 2])
    def test_a_record_that_is_gone_is_said(self, stream: Stream, empty_pages: int) -> None:
        """Far from the tip the service may say nothing for a while first."""
        number, *_ = stream.put(b"read", b"lost")
        stream.now += stream.memory.retention_millis
        stream.put(b"kept", b"kept too")
        stream.memory.expire()
        stream.behaves(empty_pages=empty_pages)
        fetched = stream.fetch(Position.after(number), Limits(1, 100))
        assert fetched.columns.data == [b"kept"]
        assert fetched.note == f"it holds nothing any more that its former consumer had read: what came after {fetched.start} may have expired"
        assert stream.go_on(fetched).note is None

    def test_it_is_looked_for_although_an_iterator_expires(self, stream: Stream) -> None:
        number, _ = stream.put(b"read", b"unread")
        real = stream.client.get_records
        stream.client.get_records = in_turn(expire, real, real)  # type: ignore[method-assign]
        fetched = stream.fetch(Position.after(number), Limits(1, 100))
        assert (fetched.columns.data, fetched.note) == ([b"unread"], None)

    def test_a_shard_that_ended_and_holds_nothing_is_suspect(self, stream: Stream) -> None:
        """The former consumer had not read to its end."""
        (number,) = stream.put(b"read")
        stream.memory.split(SHARD)
        stream.now += 2 * stream.memory.retention_millis
        stream.memory.expire()
        fetched = stream.fetch(Position.after(number))
        assert (fetched.end, fetched.records) == (END, 0)
        assert "holds nothing any more" in str(fetched.note)

    @pytest.mark.parametrize("closed", [True, False])
    @pytest.mark.parametrize("empty_pages", [0, 2])
    def test_a_place_at_no_record_is_whole_if_an_older_record_is_there(self, stream: Stream, empty_pages: int, *, closed: bool) -> None:
        """KCL's checkpoint(number) takes any number between two records."""
        older, number = stream.put(b"older", b"not put after all")
        held = stream.memory.shards[SHARD]
        del held.records[1], held.numbers[1]
        if closed:
            stream.memory.split(SHARD)
        else:
            stream.put(b"unread")
        stream.behaves(empty_pages=empty_pages)
        fetched = stream.fetch(Position.after(number))
        assert (fetched.note, fetched.columns.data) == (None, [] if closed else [b"unread"])
        assert int(older) < int(number)

    def test_an_open_shard_that_holds_nothing_says_nothing(self, stream: Stream) -> None:
        """A fleet has many that nobody writes to, and none of them has lost anything."""
        (number,) = stream.put(b"read")
        stream.now += 2 * stream.memory.retention_millis
        stream.memory.expire()
        fetched = stream.fetch(Position.after(number))
        assert (fetched.note, fetched.records, fetched.end) == (None, 0, Position.after(number))


class TestRetention:
    def test_a_place_read_longer_ago_than_retention_is_suspect(self, stream: Stream) -> None:
        numbers = stream.put(b"read", b"lost", b"lost too")
        read_to = stream.now
        stream.now += stream.memory.retention_millis + 1000
        kept = stream.put(b"kept")
        stream.memory.expire()
        fetched = stream.fetch(Position.after(numbers[0]), read_to=read_to)
        assert (fetched.columns.sequence, fetched.end) == (kept, Position.after(kept[0]))
        assert fetched.note is not None
        assert "may have expired" in fetched.note

    @staticmethod
    def raised(stream: Stream) -> int:
        """The retention is a week from now on; what it was before."""
        before = stream.memory.retention_millis
        stream.memory.retention_millis = 7 * before
        identity = replace(stream.memory.describe(), shorter_millis=before)
        stream.reader = ShardReader(stream.client, stream.memory, identity)
        return before

    @pytest.mark.parametrize("kept", [[], [b"kept"]], ids=["nothing left", "something left"])
    def test_records_that_expired_before_the_retention_was_raised_are_suspect(self, stream: Stream, kept: list[bytes]) -> None:
        number, _ = stream.put(b"read", b"lost")
        read_to = stream.now
        stream.now += stream.memory.retention_millis + 1000
        stream.memory.expire()
        self.raised(stream)
        stream.put(*kept)
        fetched = stream.fetch(Position.after(number), read_to=read_to)
        assert fetched.columns.data == kept
        assert "the stream kept records only for 24 h" in str(fetched.note)
        assert stream.go_on(fetched).note is None

    @pytest.mark.parametrize("at", ["sequence", "millis"])
    def test_nothing_is_suspect_if_the_retention_was_raised_in_time(self, stream: Stream, at: str) -> None:
        """The record at the place is there, so all that followed is."""
        began = stream.now
        number, *_ = stream.put(b"read", b"unread")
        position = Position.after(number) if at == "sequence" else Position.timestamp(began)
        read_to = stream.now if at == "sequence" else 0
        before = self.raised(stream)
        stream.now += before + 1000
        fetched = stream.fetch(position, read_to=read_to)
        assert (fetched.note, fetched.columns.data) == (None, [b"unread"] if at == "sequence" else [b"read", b"unread"])

    def child(self, stream: Stream, *parents: str) -> Fetched:
        """The first range of a child whose parents were read when the world began, and records of its own."""
        shard = stream.memory.list_shards().shards[-1].id
        place = FetchRequest(shard, TRIM_HORIZON, earliest_arrival_millis=START_MILLIS, parents=frozenset(parents))
        return stream.reader.fetch(place, Limits(10, 1000))

    @pytest.mark.parametrize("merged", [False, True])
    def test_a_child_has_lost_nothing_as_long_as_a_parent_still_has_a_record(self, stream: Stream, *, merged: bool) -> None:
        """That came before all of its own. After a merge one of the two is enough; the other never had any."""
        stream.put(b"read")
        left, right = stream.memory.split(SHARD)
        if merged:
            stream.memory.put_in(left, b"read, too")
            child, parents = stream.memory.merge(left, right), [left, right]
        else:
            child, parents = right, [SHARD]
        stream.memory.put_in(child, b"unread")
        before = self.raised(stream)
        stream.now += before + 60_000
        stream.memory.expire()
        fetched = self.child(stream, *parents)
        assert (fetched.note, fetched.columns.data) == (None, [b"unread"])

    @pytest.mark.parametrize("gone", [False, True], ids=["parent is empty", "parent has left the stream"])
    def test_a_child_is_suspect_if_its_parents_hold_nothing_any_more(self, stream: Stream, *, gone: bool) -> None:
        """What expired last of them may be older than what expired first of it, or not."""
        stream.put(b"read")
        _, child = stream.memory.split(SHARD)
        stream.memory.put_in(child, b"lost")
        stream.now += stream.memory.retention_millis + 60_000
        stream.memory.expire()
        if gone:
            stream.memory.expire_shard(SHARD)
        self.raised(stream)
        stream.memory.put_in(child, b"kept")
        fetched = self.child(stream, SHARD)
        assert fetched.columns.data == [b"kept"]
        assert "the stream kept records only for 24 h" in str(fetched.note)

    def test_a_shard_that_is_far_behind_is_looked_at_once(self, stream: Stream) -> None:
        """It holds all of what came since, whatever the shorter retention was; a reading of days has thousands of ranges."""
        number, *_ = stream.put(b"read", *[b"%d" % i for i in range(20)])
        read_to = stream.now - 20_000
        before = self.raised(stream)
        stream.now += before + 60_000
        stream.client.calls.clear()
        fetched = stream.fetch(Position.after(number), Limits(1, 1000), read_to)
        for _ in range(9):
            fetched = stream.reader.fetch(FetchRequest(SHARD, fetched.end, fetched.read_to, fetched.iterator), Limits(1, 1000))
            assert (fetched.note, fetched.records) == (None, 1)
        assert stream.client.calls.count("GetRecords") == 10 + 1

    def test_a_suspicion_is_said_again_as_long_as_its_range_is_not_bound(self, stream: Stream) -> None:
        """A task that failed is tried again in the same process."""
        number, _ = stream.put(b"read", b"lost")
        read_to = stream.now
        stream.now += stream.memory.retention_millis + 60_000
        stream.memory.expire()
        self.raised(stream)
        stream.put(b"kept")
        notes = {stream.fetch(Position.after(number), read_to=read_to).note for _ in range(2)}
        assert len(notes) == 1
        assert None not in notes

    def test_a_shard_that_was_read_within_the_shorter_retention_is_not_looked_at(self, stream: Stream) -> None:
        number, _ = stream.put(b"read", b"unread")
        before = self.raised(stream)
        stream.now += before // 2
        read_to, calls = stream.now - before + 5000, []
        real = stream.client.get_iterator
        stream.client.get_iterator = lambda *args: calls.append(args) or real(*args)  # type: ignore[method-assign,func-returns-value]
        assert stream.fetch(Position.after(number), read_to=read_to).note is None
        assert len(calls) == 1

    def test_a_place_whose_time_ran_out_within_this_second_is_suspect(self, stream: Stream) -> None:
        """The service tells whole seconds: what expired a moment ago is a whole retention old by them, and no more."""
        numbers = stream.put(b"read")
        read_to = stream.now
        stream.put(b"lost")
        stream.now = read_to + stream.memory.retention_millis + 1
        stream.memory.expire()
        assert stream.fetch(Position.after(numbers[0]), read_to=read_to).note is not None

    def test_an_idle_shard_has_lost_nothing(self, stream: Stream) -> None:
        """Its last record is long gone, its reply a whole retention behind, and it was read a minute ago."""
        numbers = stream.put(b"read")
        stream.now += 3 * stream.memory.retention_millis
        stream.memory.put_in(SHARD, b"gone as well, but read")
        position = stream.fetch(Position.after(numbers[0])).end
        stream.now += 2 * stream.memory.retention_millis
        stream.memory.expire()
        fetched = stream.fetch(position, read_to=stream.now - 60_000)
        assert (fetched.note, fetched.records, fetched.end) == (None, 0, position)

    def test_a_place_without_a_reading_time_is_not_suspect(self, stream: Stream) -> None:
        stream.now += 3 * stream.memory.retention_millis
        assert stream.fetch().note is None

    @pytest.mark.parametrize(("days", "suspect"), [(0.99, False), (1.01, True)])
    def test_a_place_in_time_is_suspect_from_that_time_on(self, stream: Stream, days: float, *, suspect: bool) -> None:
        """A consumer that began at LATEST, and did not run for a day, has lost what came then."""
        began = stream.now
        stream.put(b"lost")
        stream.now += round(days * stream.memory.retention_millis)
        stream.memory.expire()
        assert (stream.fetch(Position.timestamp(began)).note is not None) == suspect

    def test_a_start_before_the_stream_was_made_has_lost_nothing(self, stream: Stream) -> None:
        """Until the stream itself is older than its retention: then what came first may have expired unread."""
        stream.put(b"all there is")
        begins = Position.timestamp(stream.memory.created_millis - 2 * stream.memory.retention_millis)
        assert (stream.fetch(begins).note, stream.fetch(begins).columns.data) == (None, [b"all there is"])
        stream.now = stream.memory.created_millis + stream.memory.retention_millis + 1000
        stream.memory.expire()
        assert stream.fetch(begins).note is not None

    def test_a_start_that_was_overtaken_has_words_of_its_own(self, stream: Stream) -> None:
        """Nobody had read the shard. Times are for people, and whoever shows the text names the shard."""
        stream.put(b"lost")
        stream.now += stream.memory.retention_millis
        stream.now += 60_000
        stream.memory.expire()
        told = stream.fetch(Position.timestamp(START_MILLIS)).note
        begins = "it was to begin at 2023-11-14T22:13:20Z, and the stream keeps records for 24 h"
        assert told == f"{begins}: what came between then and the oldest record may have expired"

    def test_a_child_that_was_never_read_has_words_of_its_own(self, stream: Stream) -> None:
        stream.put(b"lost")
        stream.now += 2 * stream.memory.retention_millis
        for request in (FetchRequest(SHARD, TRIM_HORIZON, START_MILLIS), FetchRequest(SHARD, TRIM_HORIZON, earliest_arrival_millis=START_MILLIS)):
            told = str(stream.reader.fetch(request, Limits(10, 1000)).note)
            assert told.startswith("it follows shards that were read up to 2023-11-14T22:13:20Z, and the stream keeps records for 24 h")

    def test_an_ended_shard_was_read_up_to_its_last_record(self, stream: Stream) -> None:
        """When it was closed nobody tells; its children begin then, and may have been waiting for as long."""
        stream.put(b"last")
        stream.memory.split(SHARD)
        stream.now += 3_600_000
        stream.behaves(end_with_records=True)
        assert (stream.fetch().end, stream.fetch().read_to) == (END, START_MILLIS)

    def test_a_child_that_ended_without_a_record_was_read_up_to_its_parents(self, stream: Stream) -> None:
        """Its own children ask its row how old their records may be."""
        stream.memory.split(SHARD)
        fetched = stream.reader.fetch(FetchRequest(SHARD, TRIM_HORIZON, earliest_arrival_millis=77), Limits(10, 1000))
        assert (fetched.end, fetched.read_to) == (END, 77)

    def test_a_child_that_goes_on_was_not_read_up_to_its_parents(self, stream: Stream) -> None:
        """A closed shard may claim the tip once more, after its children's first records. What of those is left is not read."""
        stream.put(b"read", b"left")
        place = FetchRequest(SHARD, TRIM_HORIZON, earliest_arrival_millis=stream.now)
        assert stream.reader.fetch(place, Limits(1, 1000)).read_to == START_MILLIS

    def test_a_child_that_is_on_its_way_is_as_old_as_its_parents_say(self, stream: Stream) -> None:
        """It has not come to a record. If its row forgot the age, its next range would suspect a loss."""
        stream.put(b"later")
        stream.now += 2 * stream.memory.retention_millis
        stream.behaves(empty_pages=30)
        place = FetchRequest(SHARD, TRIM_HORIZON, earliest_arrival_millis=stream.now - 1000)
        fetched = stream.reader.fetch(place, Limits(10, 1000))
        assert (fetched.end, fetched.behind > 0, fetched.read_to) == (TRIM_HORIZON, True, stream.now - 1000)

    def test_beginning_again_repeats_nothing(self, stream: Stream) -> None:
        """Retention is lazy: records older than the place may still be there."""
        numbers = stream.put(b"read", b"read too", b"unread")
        stream.behaves(empty_pages=1)
        read_to = stream.now
        stream.now += stream.memory.retention_millis + 1000
        fetched = stream.fetch(Position.after(numbers[1]), read_to=read_to)
        assert fetched.columns.data == [b"unread"]
        assert fetched.note is not None

    def test_nothing_from_before_a_time_comes_though_it_is_still_there(self, stream: Stream) -> None:
        """Retention is lazy, and a consumer that began at LATEST is owed nothing older."""
        stream.put(b"before")
        began = stream.now
        stream.put(b"since")
        stream.behaves(empty_pages=1)
        stream.now += stream.memory.retention_millis + 1000
        fetched = stream.fetch(Position.timestamp(began))
        assert fetched.columns.data == [b"since"]
        assert fetched.note is not None

    def test_an_unknown_time_changes_nothing(self, stream: Stream) -> None:
        """A proxy on the way took the Date header."""
        stream.client.get_records = at_the_tip  # type: ignore[method-assign, assignment]
        fetched = stream.fetch(Position.timestamp(5), read_to=77)
        assert (fetched.end, fetched.read_to, fetched.note) == (Position.timestamp(5), 77, None)

    def test_read_to_never_goes_back(self, stream: Stream) -> None:
        """Clocks of two hosts of the service may differ a little."""
        assert stream.fetch(read_to=stream.now + 5000).read_to == stream.now + 5000
