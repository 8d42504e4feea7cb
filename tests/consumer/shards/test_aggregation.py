"""KPL aggregates are taken apart as KCL does it, and whatever is none is left whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading.kpl import aggregate, empties, field_bytes, seal, varint

from sluice_consumer.shards.aggregation import MAGIC, UserRecord, WholeRecord, user_records

SESSION = settings(max_examples=60, deadline=None)


@given(users=st.lists(st.tuples(st.text(max_size=20), st.binary(max_size=300)), min_size=1, max_size=200))
@SESSION
def test_what_was_aggregated_comes_out_in_order_with_its_keys(users: list[tuple[str, bytes]]) -> None:
    assert user_records("outer", aggregate(users)) == [UserRecord(sub, key, data) for sub, (key, data) in enumerate(users)]


@given(data=st.binary(max_size=200))
@SESSION
def test_a_plain_record_is_its_own_only_user_record(data: bytes) -> None:
    assert user_records("key", data) == [UserRecord(0, "key", data)]


@given(body=st.binary(min_size=1, max_size=60))
@SESSION
def test_garbage_in_a_valid_envelope_never_raises(body: bytes) -> None:
    data = seal(body)
    found = user_records("key", data)
    assert found == [UserRecord(0, "key", data)] or all(user.data in data for user in found)


@given(
    users=st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=9)), min_size=1, max_size=5), at=st.integers(min_value=4), by=st.integers(1, 255)
)
@SESSION
def test_one_wrong_byte_makes_it_a_plain_record(users: list[tuple[str, bytes]], at: int, by: int) -> None:
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
    "a group that does not end": b"\x0b\x08\x00",
    "a group that another ends": b"\x0b\x14",
    "the end of a group": b"\x0c",
    "a field without number": b"\x00\x00",
    "a type that protobuf has not": b"\x0e",
    "a tag of a record without key": b"\x0a\x01a\x1a\x06\x08\x00\x1a\x00\x22\x00",
    "a key index beyond 31 bits": b"\x0a\x01a\x1a\x08\x08\xff\xff\xff\xff\x0f\x1a\x00",
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_message_is_a_plain_record(body: bytes) -> None:
    assert user_records("key", seal(body)) == [UserRecord(0, "key", seal(body))]


def test_the_magic_alone_is_a_plain_record() -> None:
    """KCL asks for more than magic and digest, too."""
    for data in (MAGIC, MAGIC + b"x" * 16, seal(b"")):
        assert user_records("key", data) == [UserRecord(0, "key", data)]


def test_unknown_fields_are_stepped_over() -> None:
    """Later versions of the format may have more: tags of a record are field 4, there are groups, and numbers come in three widths."""
    record = b"\x08\x00" + b"\x10\x00" + b"\x1a\x01x" + b"\x22\x05\x0a\x03tag" + b"\x4b\x08\x00\x4c" + b"\x31" + b"8" * 8 + b"\x3d" + b"4" * 4
    body = b"\x0a\x01a" + b"\x12\x011" + b"\x48\x96\x01" + b"\x1a" + bytes([len(record)]) + record
    assert user_records("key", seal(body)) == [UserRecord(0, "a", b"x")]


UNREADABLE = {
    "a character that was cut": ("é".encode()[:1], "\ufffd"),
    "a character of four bytes that was cut": ("\U0001f600".encode()[:3], "\ufffd"),
    "no text at all": (b"\xff\xfe", "\ufffd\ufffd"),
    "surrogates, as CESU-8 has them": (b"\xed\xa0\xbd\xed\xb8\x80", "\ufffd\ufffd"),
    "half a surrogate": (b"\xed\xa0", "\ufffd"),
    "an overlong form": (b"\xc0\xaf", "\ufffd\ufffd"),
    "between readable text": (b"a\xe2\x82b", "a\ufffdb"),
}


@pytest.mark.parametrize(("key", "text"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_key_that_is_no_text_is_read_as_java_reads_it(key: bytes, text: str) -> None:
    """fluent-bit cuts keys at 256 bytes. `tests/contract/kcl` compares this with the real library."""
    body = field_bytes(1, b"other") + field_bytes(1, key) + b"".join(field_bytes(3, b"\x08" + varint(n) + b"\x1a\x01x") for n in (0, 1))
    assert user_records("outer", seal(body)) == [UserRecord(0, "other", b"x"), UserRecord(1, text, b"x")]


def test_the_index_of_a_key_is_read_as_java_reads_it() -> None:
    """Of its 64 bits it takes 32."""
    data = seal(field_bytes(1, b"a") + field_bytes(1, b"b") + field_bytes(3, b"\x08" + varint(2**32 + 1) + b"\x1a\x01x"))
    assert user_records("outer", data) == [UserRecord(0, "b", b"x")]


def test_an_aggregate_with_a_key_that_is_not_in_its_table_has_the_place_of_its_last() -> None:
    """KCL has delivered those before it; whoever takes over from there has the whole."""
    data = seal(field_bytes(1, b"a") + b"\x1a\x04\x08\x00\x1a\x00" * 2 + b"\x1a\x04\x08\x07\x1a\x00")
    assert user_records("outer", data) == [WholeRecord(2, "outer", data)]


def test_an_aggregate_without_user_records_is_empty() -> None:
    """Keys and no records: there is nothing to deliver, as KCL has it."""
    assert user_records("key", seal(b"\x0a\x01a")) == []


def test_an_aggregate_within_an_aggregate_stays_whole() -> None:
    """The KPL does not nest."""
    inner = aggregate([("a", b"1"), ("b", b"2")])
    assert user_records("key", aggregate([("c", inner)])) == [UserRecord(0, "c", inner)]


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
