"""KPL aggregates are taken apart as KCL does it, and whatever is none is left whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading.kpl import aggregate, empties, seal

from sluice_consumer.shards.aggregation import MAGIC, UserRecord, user_records

SESSION = settings(max_examples=60, deadline=None)


@given(users=st.lists(st.tuples(st.text(max_size=20), st.binary(max_size=300)), min_size=1, max_size=200))
@SESSION
def test_what_was_aggregated_comes_out_in_order_with_its_keys(users: list[tuple[str, bytes]]) -> None:
    """Any user records, encoded and decoded, are the same."""
    assert user_records("outer", aggregate(users)) == [UserRecord(sub, key, data) for sub, (key, data) in enumerate(users)]


@given(data=st.binary(max_size=200))
@SESSION
def test_a_plain_record_is_its_own_only_user_record(data: bytes) -> None:
    """Without the magic there is nothing to take apart."""
    assert user_records("key", data) == [UserRecord(0, "key", data)]


@given(body=st.binary(min_size=1, max_size=60))
@SESSION
def test_garbage_in_a_valid_envelope_never_raises(body: bytes) -> None:
    """Magic and digest may be right around anything at all."""
    data = seal(body)
    found = user_records("key", data)
    assert found == [UserRecord(0, "key", data)] or all(user.data in data for user in found)


@given(
    users=st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=9)), min_size=1, max_size=5), at=st.integers(min_value=4), by=st.integers(1, 255)
)
@SESSION
def test_one_wrong_byte_makes_it_a_plain_record(users: list[tuple[str, bytes]], at: int, by: int) -> None:
    """The digest guards every byte after the magic."""
    broken = bytearray(aggregate(users))
    broken[4 + at % (len(broken) - 4)] ^= by
    assert user_records("key", bytes(broken)) == [UserRecord(0, "key", bytes(broken))]


MALFORMED = {
    "a key index without a key": b"\x1a\x04\x08\x07\x1a\x00",
    "a user record without a key index": b"\x0a\x01a\x1a\x02\x1a\x00",
    "a user record without data": b"\x0a\x01a\x1a\x02\x08\x00",
    "a field longer than the message": b"\x0a\x7fa",
    "a data field longer than its record": b"\x0a\x01a\x1a\x04\x08\x00\x1a\x05" + b"x" * 9,
    "a number that does not end": b"\x08\xff\xff",
    "a number of eleven bytes": b"\x08" + b"\xff" * 10 + b"\x01",
    "a group, which protobuf 3 has not": b"\x0b\x00",
    "a key that is no text": b"\x0a\x01\xff\x1a\x04\x08\x00\x1a\x00",
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_message_is_a_plain_record(body: bytes) -> None:
    """Nothing is lost: the payload is delivered as it came."""
    assert user_records("key", seal(body)) == [UserRecord(0, "key", seal(body))]


def test_the_magic_alone_is_a_plain_record() -> None:
    """KCL asks for more than magic and digest, too."""
    for data in (MAGIC, MAGIC + b"x" * 16, seal(b"")):
        assert user_records("key", data) == [UserRecord(0, "key", data)]


def test_unknown_fields_are_stepped_over() -> None:
    """Later versions of the format may have more: tags of a record are field 4, and numbers come in three widths."""
    record = b"\x08\x00" + b"\x10\x00" + b"\x1a\x01x" + b"\x22\x03tag" + b"\x31" + b"8" * 8 + b"\x3d" + b"4" * 4
    body = b"\x0a\x01a" + b"\x12\x011" + b"\x48\x96\x01" + b"\x1a" + bytes([len(record)]) + record
    assert user_records("key", seal(body)) == [UserRecord(0, "a", b"x")]


def test_an_aggregate_without_user_records_is_empty() -> None:
    """Keys and no records: there is nothing to deliver, as KCL has it."""
    assert user_records("key", seal(b"\x0a\x01a")) == []


def test_an_aggregate_within_an_aggregate_stays_whole() -> None:
    """The KPL does not nest."""
    inner = aggregate([("a", b"1"), ("b", b"2")])
    assert user_records("key", aggregate([("c", inner)])) == [UserRecord(0, "c", inner)]


def test_user_records_of_another_shards_hash_keys_are_delivered() -> None:
    """KCL drops the whole aggregate, and with it what nobody puts again; see the module's text.

    The hash keys of a hundred keys lie all over: whatever half of them this shard serves, all come out.
    """
    users = [(f"key-{i}", bytes([i])) for i in range(100)]
    assert len(user_records("outer", aggregate(users))) == 100


def test_an_aggregate_that_would_become_too_large_is_delivered_whole() -> None:
    """Less than a megabyte as it was sent, 20 GB as rows: whoever bound it would die of it in every epoch."""
    data = empties(100_000, b"k" * 200_000)
    assert len(data) < 2**20
    assert user_records("outer", data) == [UserRecord(99_999, "outer", data)]


@pytest.mark.parametrize("key", [b"k" * 1024, "\N{SNOWMAN}".encode() * 512])
def test_the_bound_of_an_aggregate_is_the_same_for_ever(key: bytes) -> None:
    """A range that was bound counts by it; the number stands here once more, so that nobody changes it unnoticed."""
    most = 2**26 // (len(key) + 128)
    assert len(user_records("outer", empties(most, key))) == most
    assert len(user_records("outer", empties(most + 1, key))) == 1


def test_any_aggregate_of_a_megabyte_with_keys_that_kinesis_takes_is_taken_apart() -> None:
    """Of ASCII: 256 characters at most (API reference, PutRecord)."""
    key = b"k" * 256
    count = (2**20 - len(empties(0, key))) // 6
    assert len(user_records("outer", empties(count, key))) == count
