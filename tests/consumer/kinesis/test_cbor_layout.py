"""The layout of a record: what is the same in every record, what has one length, and what varies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading.cbor import Style, head, seconds, text

from sluice_consumer.kinesis.cbor_vectorized import BYTES, TEXT, layout, string

SEQUENCE = "4" * 56
MILLIS = 1_700_000_000_123


def test_a_record_is_segments_before_its_varying_values() -> None:
    """Data and partition key vary in length; each has a segment before it, and one ends the record."""
    found = layout(Style().record(SEQUENCE, "key", b"payload", MILLIS), 0)
    assert found
    assert [segment.varying for segment in found.segments] == ["Data", "PartitionKey", ""]
    assert [segment.length for segment in found.segments] == [1 + 15 + 2 + 56 + 29 + 1 + 8 + 5, 13, 0]
    assert {name: length for name, (_, length) in found.segments[0].fixed.items()} == {"SequenceNumber": 56, "ApproximateArrivalTimestamp": 8}
    assert found.mark == b"\xa4" + text("SequenceNumber") + b"\x78\x38"


def test_a_segment_says_which_bytes_are_the_same_in_every_record() -> None:
    """Two records differ only where the mask has zeros. The mask is as long as the bytes, and a multiple of eight."""
    one, other = (layout(Style().record(digit * 56, "k", b"x", MILLIS + at), 0) for at, digit in enumerate("12"))
    assert one == other
    assert one
    for segment in one.segments:
        assert len(segment.same) == len(segment.mask)
        assert len(segment.mask) % 8 == 0
        assert segment.mask.count(0) == len(segment.mask) - segment.length + sum(length for _, length in segment.fixed.values())


@pytest.mark.parametrize(
    ("style", "time", "segments"),
    [(Style(time=seconds), ">f8", 3), (Style(indefinite=True), ">u8", 3), (Style(extra={"EncryptionType": text("KMS")}), ">u8", 3)],
    ids=["seconds", "indefinite", "encrypted"],
)
def test_known_styles_have_a_layout(style: Style, time: str, segments: int) -> None:
    found = layout(style.record(SEQUENCE, "key", b"payload", MILLIS), 0)
    assert found
    assert (found.time, len(found.segments)) == (time, segments)


UNKNOWN = {
    "a key that no record has": Style(extra={"Color": text("red")}),
    "no payload": Style(order=("SequenceNumber", "ApproximateArrivalTimestamp", "PartitionKey"), indefinite=True),
    "a time in text": Style(time=lambda _: text("now")),
    "a key that is no text": Style(key=lambda key: head(BYTES, len(key)) + key.encode()),
}


@pytest.mark.parametrize("style", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_not_known_has_no_layout(style: Style) -> None:
    assert layout(style.record(SEQUENCE, "key", b"payload", MILLIS), 0) is None


@given(content=st.binary(max_size=70_000), before=st.binary(max_size=9))
def test_a_string_is_found_whatever_its_length(content: bytes, before: bytes) -> None:
    body = before + head(BYTES, len(content)) + content
    start, end = string(body, len(before), BYTES)
    assert body[start:end] == content
    assert string(body, len(before), TEXT) == (len(before), len(before))


def test_a_body_that_ends_inside_a_record_is_an_error() -> None:
    with pytest.raises(IndexError):
        layout(Style().record(SEQUENCE, "key", b"payload", MILLIS)[:40], 0)
