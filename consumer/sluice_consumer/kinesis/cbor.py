"""The wire format that the service speaks with its Java SDK: CBOR (RFC 8949), payloads as they are instead of base64.

Long replies are read by `cbor_vectorized`, which makes no object of a record; what it does not know goes through the library. Both are strict: a
reply that is not what Kinesis says (payloads that are no bytes, …) is a ValueError, upon which the client asks in JSON from then on.
"""

from __future__ import annotations

from typing import Any

import cbor2

from sluice_checkpoints.names import counted
from sluice_consumer.kinesis.client import RecordColumns, Records

CONTENT_TYPE = "application/x-amz-cbor-1.1"
RECORDS = "Records"
NAMED = b"\x67Records"
WORTH_IT = 64  # records in a reply from which on its fixed costs are less than the library's for each
MILLIS_FROM = 10**11  # larger numbers are milliseconds (since 1973), smaller ones seconds (until 5138)


def encode(ask: dict[str, Any]) -> bytes:
    """A request body."""
    return cbor2.dumps(ask)


def decode(body: bytes) -> dict[str, Any]:
    """A reply's body, its `Records` in columns.

    Raises:
        ValueError: it is no CBOR map, or its records are not Kinesis'.
    """
    fast = _leapt(body)
    if fast is not None:
        return fast
    value = _loads(body) if body else {}
    if not isinstance(value, dict):
        raise ValueError(f"a reply is a map, not {type(value).__name__}")  # noqa: TRY004 - what the parser raises too
    return value | {RECORDS: columns(value[RECORDS])} if RECORDS in value else value


def _leapt(body: bytes) -> dict[str, Any] | None:
    """The reply, if its records are many and of one form.

    The bytes before and behind the records are parsed as a map of their own. If that fails, payload bytes were mistaken for records: the library
    reads the reply then.
    """
    at = body.find(NAMED, 0, 4096)
    if at < 0 or not (0xA0 < body[0] < 0xB8 or body[0] == 0xBF):
        return None
    from sluice_consumer.kinesis import cbor_vectorized  # noqa: PLC0415 - numpy and Arrow, which only those who read records need

    try:
        leapt = cbor_vectorized.read(body, at + len(NAMED), WORTH_IT)
        if leapt is None:
            return None
        records, end = leapt
        before = _pairs(body[1:at] + b"\xff")
        after = _pairs(body[end:] + (b"" if body[0] == 0xBF else b"\xff"))
    except (ValueError, IndexError):
        return None
    whole = body[0] == 0xBF or body[0] & 31 == len(before) + 1 + len(after)
    return {**before, RECORDS: records, **after} if whole else None


def _pairs(inside: bytes) -> dict[str, Any]:
    value = _loads(b"\xbf" + inside)
    assert isinstance(value, dict)  # noqa: S101 - that is what BF begins
    return value


def _loads(body: bytes) -> Any:
    """The one item that `body` is; a tag 1 is what it holds, see `millis`.

    Raises:
        ValueError: it is not one item.
    """
    try:
        items = cbor2.loads(b"\x9f" + body + b"\xff", semantic_decoders={1: lambda value, *_: value})
    except cbor2.CBORError as error:
        raise ValueError(f"no CBOR: {error}") from error
    if len(items) != 1:
        raise ValueError(f"{counted(len(items), 'item')} instead of one")
    return items[0]


def columns(records: Any) -> RecordColumns:
    """The `Records` of a reply as the library reads it.

    Raises:
        ValueError: a field is missing or of another type.
    """
    if not isinstance(records, list):
        raise ValueError(f"records are an array, not {type(records).__name__}")  # noqa: TRY004 - as every other reply that is none
    try:
        read = Records(
            sequence=[record["SequenceNumber"] for record in records],
            partition_key=[record["PartitionKey"] for record in records],
            data=[record["Data"] for record in records],
            arrival_millis=[millis(record["ApproximateArrivalTimestamp"]) for record in records],
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"records that are not Kinesis': {error!r}") from error
    texts = (*read.sequence, *read.partition_key)
    if not all(type(text) is str for text in texts) or not all(type(data) is bytes for data in read.data):
        raise ValueError("payloads are bytes, numbers and keys are text")
    return read


def millis(value: Any) -> int:
    """Epoch milliseconds of a point in time as Kinesis may send it: milliseconds, or seconds with a fraction; tagged (1) or not.

    The Java SDK tags *milliseconds* with 1, for which RFC 8949 (3.4.2) has seconds; the size of the number distinguishes them.

    Raises:
        TypeError: it is not a time.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a time")
    return round(value if abs(value) >= MILLIS_FROM else value * 1000)
