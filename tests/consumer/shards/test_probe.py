"""A probe says whether a shard has news, for one small call."""

from __future__ import annotations

from reading.stream import SHARD, Stream

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_consumer.kinesis.client import IteratorExpired, ShardNotFound
from sluice_consumer.shards.probe import Probe


def probe(stream: Stream, position: Position = TRIM_HORIZON) -> Probe:
    """A probe of the first shard."""
    return Probe(stream.client, SHARD, position)


def test_an_idle_shard_has_none(stream: Stream) -> None:
    """And one question is one call, after the first."""
    asked = probe(stream, Position.after(stream.put(b"old")[0]))
    assert not asked.ask()
    stream.client.calls.clear()
    assert not asked.ask()
    assert stream.client.calls == ["GetRecords"]


def test_a_new_record_is_news(stream: Stream) -> None:
    """Found with the iterator that was kept."""
    asked = probe(stream)
    assert not asked.ask()
    stream.put(b"new")
    assert asked.ask()


def test_the_end_of_the_shard_is_news(stream: Stream) -> None:
    """The next batch binds it."""
    asked = probe(stream)
    assert not asked.ask()
    stream.twin.split(SHARD)
    assert asked.ask()


def test_a_shard_that_vanished_is_news(stream: Stream) -> None:
    """The next batch finds out what happened."""
    stream.client.fail(ShardNotFound("no such shard"))
    assert probe(stream).ask()


def test_an_expired_iterator_is_renewed(stream: Stream) -> None:
    """An idle day is longer than five minutes."""
    asked = probe(stream)
    assert not asked.ask()
    stream.put(b"new")
    stream.client.fail(IteratorExpired("expired"))
    assert not asked.ask()
    assert asked.ask()


def test_empty_replies_far_from_the_tip_are_followed(stream: Stream) -> None:
    """Some in one question, the rest in the next: a record far behind is found in time."""
    asked = probe(stream)
    stream.put(b"a")
    stream.behaves(empty_pages=8)
    assert [asked.ask(), asked.ask()] == [False, True]
    assert stream.client.calls.count("GetRecords") == 9
