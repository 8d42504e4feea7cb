"""A probe says whether a shard is idle, for one small call."""

from __future__ import annotations

import pytest
from reading.stream import SHARD, Stream

from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_consumer.kinesis.client import IteratorExpired, Page, ShardNotFound
from sluice_consumer.shards.probes import FOLLOWED, KinesisProber


def prober(stream: Stream, position: Position = TRIM_HORIZON) -> KinesisProber:
    return KinesisProber(stream.client, SHARD, position)


def test_a_shard_without_more_is_idle(stream: Stream) -> None:
    asked = prober(stream, Position.after(stream.put(b"old")[0]))
    assert asked.idle()
    stream.client.calls.clear()
    assert asked.idle()
    assert stream.client.calls == ["GetRecords"]


def test_a_shard_with_a_new_record_is_not(stream: Stream) -> None:
    asked = prober(stream)
    assert asked.idle()
    stream.put(b"new")
    assert not asked.idle()


def test_what_a_probe_found_the_next_one_finds_again(stream: Stream) -> None:
    """A batch may return without reading it, and the shard's place stays the same."""
    asked = prober(stream)
    stream.put(b"new")
    assert [asked.idle(), asked.idle()] == [False, False]
    stream.memory.split(SHARD)
    ended = prober(stream, Position.after(stream.memory.shards[SHARD].records[-1].sequence))
    assert [ended.idle(), ended.idle()] == [False, False]


def test_a_shard_that_ended_is_not_idle(stream: Stream) -> None:
    asked = prober(stream)
    assert asked.idle()
    stream.memory.split(SHARD)
    assert not asked.idle()


def test_a_shard_that_vanished_is_not_idle(stream: Stream) -> None:
    stream.client.fail(ShardNotFound("no such shard"))
    assert not prober(stream).idle()


def test_an_expired_iterator_is_renewed(stream: Stream) -> None:
    """An idle day is longer than five minutes."""
    asked = prober(stream)
    assert asked.idle()
    stream.client.fail(IteratorExpired("expired"))
    assert asked.idle()
    stream.put(b"new")
    stream.client.fail(IteratorExpired("expired"))
    assert not asked.idle()


def test_a_probe_that_did_not_come_to_the_tip_says_not_idle(stream: Stream) -> None:
    asked = prober(stream)
    stream.behaves(empty_pages=FOLLOWED + 3)
    assert [asked.idle(), asked.idle()] == [False, True]
    assert stream.client.calls.count("GetRecords") == FOLLOWED + 4


def test_a_record_far_behind_is_found_in_time(stream: Stream) -> None:
    asked = prober(stream)
    stream.put(b"a")
    stream.behaves(empty_pages=FOLLOWED + 3)
    assert [asked.idle(), asked.idle()] == [False, False]
    assert stream.client.calls.count("GetRecords") == FOLLOWED + 4


def test_a_prober_counts_the_calls_that_succeeded_and_goes_on_where_one_was_refused(stream: Stream) -> None:
    """A probe that walks through empty replies makes several; with what it counts, the next one waits for as long as it has to."""
    asked = prober(stream)
    stream.behaves(empty_pages=3)
    real, pages = stream.client.get_records, iter([None, Again("not now")])

    def refusing(shard_id: str, iterator: str, limit: int) -> Page:
        if (failure := next(pages, None)) is not None:
            raise failure
        return real(shard_id, iterator, limit)

    stream.client.get_records = refusing  # type: ignore[method-assign]
    with pytest.raises(Again):
        asked.idle()
    assert asked.calls == 1
    assert asked.idle()
    assert asked.calls == 4
