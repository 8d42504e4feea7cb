"""Replies in CBOR become the records they hold, whichever way they are written; what is none is told, never guessed."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from botocore.parsers import RpcV2CBORParser
from hypothesis import given, settings
from hypothesis import strategies as st
from reading.cbor import BYTES, Style, head, millis, pieces, seconds, tagged_millis, text, untagged_seconds

from sluice_consumer.kinesis import arrow_arrays, cbor
from sluice_consumer.kinesis.client import RecordColumns, Records
from sluice_consumer.kinesis.packed import PackedRecords, cut

START = 1_700_000_000_123
STYLES = {
    "definite": Style(),
    "Records first": Style(last=False),
    "indefinite": Style(indefinite=True),
    "indefinite, Records first": Style(indefinite=True, last=False),
    "the keys in another order": Style(order=("PartitionKey", "Data", "ApproximateArrivalTimestamp", "SequenceNumber")),
    "tagged milliseconds": Style(time=tagged_millis),
    "tagged seconds": Style(time=seconds),
    "seconds": Style(time=untagged_seconds),
    "with the kind of encryption": Style(extra={"EncryptionType": text("KMS")}),
}
SESSION = settings(max_examples=60, deadline=None)


def records(count: int, size: int = 300) -> Records:
    """Records of all sizes up to `size`, so that every form of a length is among them."""
    dice = random.Random(count)  # noqa: S311 - test data
    numbers = range(count)
    return Records(
        [str(10**55 + i) for i in numbers],
        [f"{'é' * (i % 40)}{i}" for i in numbers],
        [dice.randbytes(dice.choice([0, 1, 23, 24, 255, 256, dice.randrange(size + 1)])) for _ in numbers],
        [START + i for i in numbers],
    )


def listed(found: RecordColumns) -> Records:
    return Records(found.sequence, found.partition_key, found.data, found.arrival_millis)


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES.keys())
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
def test_every_way_to_write_a_reply_is_read(style: Style, count: int) -> None:
    """Short replies through the library, long ones in steps; both give the same."""
    reply = cbor.decode(style.reply(records(count)))
    assert listed(reply["Records"]) == records(count)
    assert isinstance(reply["Records"], PackedRecords) == (count >= cbor.WORTH_IT)
    assert (reply["NextShardIterator"], reply["MillisBehindLatest"]) == ("next", 12)


def test_records_of_64_kib_and_more_are_read() -> None:
    """Their lengths have four bytes."""
    made = records(70, 200_000)
    assert max(map(len, made.data)) > 1 << 16
    found = cbor.decode(Style().reply(made))["Records"]
    assert isinstance(found, PackedRecords)
    assert listed(found) == made


@given(st.lists(st.tuples(st.text(max_size=30), st.binary(max_size=80), st.integers(10**12, 10**13)), min_size=64, max_size=200))
@SESSION
def test_any_records_are_read(rows: list[tuple[str, bytes, int]]) -> None:
    made = Records([str(i) for i in range(1000, 1000 + len(rows))], [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])
    assert listed(cbor.decode(Style().reply(made))["Records"]) == made


def test_botocores_own_parser_reads_the_same() -> None:
    """A second opinion on what these tests write by hand."""
    parser = RpcV2CBORParser()
    body = Style().reply(records(100))
    parsed = parser.parse_data_item(parser.get_peekable_stream_from_bytes(body))
    assert [record["Data"] for record in parsed["Records"]] == cbor.decode(body)["Records"].data
    assert [record["SequenceNumber"] for record in parsed["Records"]] == records(100).sequence


class TestDeceit:
    """A payload may hold the bytes that records and replies are made of."""

    @pytest.mark.parametrize("style", [Style(), Style(indefinite=True)], ids=["definite", "indefinite"])
    def test_payloads_that_look_like_records(self, style: Style) -> None:
        made = records(400)
        bait = style.record(*next(zip(made.sequence, made.partition_key, made.data, made.arrival_millis, strict=True)))
        for rest in (made.data, [b""] * 400):
            made.data = [bait * (i % 7) + data for i, data in enumerate(rest)]
            assert listed(cbor.decode(style.reply(made))["Records"]) == made

    @pytest.mark.parametrize("style", [Style(), Style(indefinite=True)], ids=["definite", "indefinite"])
    def test_a_key_that_comes_twice(self, style: Style) -> None:
        """The last one counts, as the library has it; no record of the service is written so."""
        pairs = [("SequenceNumber", text("7")), ("PartitionKey", text("first")), ("ApproximateArrivalTimestamp", millis(START))]
        record = style.pairs([*pairs, ("Data", head(BYTES, 1) + b"x"), ("PartitionKey", text("last"))])
        found = cbor.decode(head(5, 1) + text("Records") + head(4, 100) + record * 100)["Records"]
        assert found.partition_key == ["last"] * 100

    @pytest.mark.parametrize("name", ["PartitionKey", "Data"])
    def test_one_value_of_the_wrong_type(self, name: str) -> None:
        made, other = records(100), {"PartitionKey": head(BYTES, 1) + b"k", "Data": text("payload")}
        rows = list(zip(made.sequence, made.partition_key, made.data, made.arrival_millis, strict=True))
        odd = Style(extra={name: other[name]})
        style = replace(odd, order=tuple(key for key in odd.order if key != name))
        good = Style(order=(*style.order, name))
        inside = b"".join((style if i == 50 else good).record(*row) for i, row in enumerate(rows))
        with pytest.raises(ValueError, match="payloads are bytes"):
            cbor.decode(head(5, 1) + text("Records") + head(4, 100) + inside)

    def test_an_iterator_that_looks_like_the_records(self) -> None:
        body = Style().reply(records(100), iterator="gRecords" * 3)
        reply = cbor.decode(body)
        assert (reply["NextShardIterator"], listed(reply["Records"])) == ("gRecords" * 3, records(100))

    @pytest.mark.parametrize("at", [0, 1, 50, 98, 99])
    @pytest.mark.parametrize(
        "odd",
        [
            Style(order=("Data", "SequenceNumber", "PartitionKey", "ApproximateArrivalTimestamp")),
            Style(time=tagged_millis),
            Style(extra={"EncryptionType": text("NONE")}),
            Style(indefinite=True),
            Style(key=pieces),
        ],
        ids=["order", "time", "one key more", "indefinite", "text in chunks"],
    )
    def test_one_record_that_is_written_otherwise(self, odd: Style, at: int) -> None:
        made = records(100)
        rows = list(zip(made.sequence, made.partition_key, made.data, made.arrival_millis, strict=True))
        inside = b"".join((odd if i == at else Style()).record(*row) for i, row in enumerate(rows))
        body = head(5, 1) + text("Records") + head(4, 100) + inside
        assert listed(cbor.decode(body)["Records"]) == made

    def test_sequence_numbers_of_different_lengths(self) -> None:
        made = replace(records(100), sequence=[str(10**50 + i) if i % 9 else str(10**55 + i) for i in range(100)])
        assert listed(cbor.decode(Style().reply(made))["Records"]) == made

    @given(at=st.integers(0, 10**6), by=st.integers(1, 255))
    @SESSION
    def test_one_wrong_byte_never_gives_something_the_library_would_not(self, at: int, by: int) -> None:
        body = bytearray(Style().reply(records(80, 40)))
        body[at % len(body)] ^= by
        try:
            expected = listed(cbor.columns(cbor._loads(bytes(body))["Records"]))
        except (ValueError, KeyError, TypeError):
            with pytest.raises((ValueError, KeyError, TypeError)):
                cbor.decode(bytes(body))["Records"]
        else:
            assert listed(cbor.decode(bytes(body))["Records"]) == expected


NOT_KINESIS = {
    "JSON": b'{"Records": []}',
    "an array": b"\x80",
    "half a reply": Style().reply(records(100))[:-40],
    "half a short reply": Style().reply(records(3))[:-4],
    "something behind it": Style().reply(records(3)) + b"\x00",
    "payloads in base64": b"\xa1" + text("Records") + b"\x81" + b"\xa4" + text("SequenceNumber") + text("1") + text("PartitionKey") + text("k")
    + text("Data") + text("AAAA") + text("ApproximateArrivalTimestamp") + millis(START),
    "a record without a payload": b"\xa1" + text("Records") + b"\x81\xa1" + text("SequenceNumber") + text("1"),
    "many records without a payload": b"\xa1" + text("Records") + head(4, 100) + 100 * (b"\xa4" + text("EncryptionType") + text("KMS")
    + text("SequenceNumber") + text("1") + text("PartitionKey") + text("k") + text("ApproximateArrivalTimestamp") + millis(START)),
    "records that are none": b"\xa1" + text("Records") + head(BYTES, 0),
}  # fmt: skip


@pytest.mark.parametrize("body", NOT_KINESIS.values(), ids=NOT_KINESIS.keys())
def test_what_is_not_a_reply_of_kinesis_is_told(body: bytes) -> None:
    """Emulators speak their own CBOR; they are asked in JSON then."""
    with pytest.raises(ValueError, match=r"."):
        cbor.decode(body)


TIMES = {1_700_000_000_123: 1_700_000_000_123, 1_700_000_000: 1_700_000_000_000, 1_700_000_000.123: 1_700_000_000_123, 0: 0}


@pytest.mark.parametrize(("sent", "read"), TIMES.items())
def test_the_size_of_a_time_tells_its_unit(sent: float, read: int) -> None:
    assert cbor.millis(sent) == read


def test_packed_records_are_records() -> None:
    made = records(100)
    packed = cbor.decode(Style().reply(made))["Records"]
    assert listed(packed.between(10, 20)) == made.between(10, 20)
    assert list(packed.totals()) == list(made.totals())
    assert [packed.number(i) for i in (0, 5, -1)] == [made.number(i) for i in (0, 5, -1)]
    for prefix in (made.data[17][:4], b"none of them begins so"):
        assert packed.any_with(prefix) == made.any_with(prefix)


@given(st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=30)), max_size=9))
@SESSION
def test_what_is_cut_out_of_a_reply_is_what_stood_there(pairs: list[tuple[bytes, bytes]]) -> None:
    ends = [sum(len(gap) + len(value) for gap, value in pairs[: i + 1]) for i in range(len(pairs))]
    starts = [end - len(value) for end, (_, value) in zip(ends, pairs, strict=True)]
    found = cut(b"".join(gap + value for gap, value in pairs), np.array(starts, np.int64), np.array(ends, np.int64))
    found.validate(full=True)
    assert found.to_pylist() == [value for _, value in pairs]
    assert arrow_arrays.lengths(found).tolist() == [len(value) for _, value in pairs]
