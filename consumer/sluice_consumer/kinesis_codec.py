"""The wire format of Kinesis: JSON with base64 payloads. Fast parsers, and columns instead of one object a record."""

from __future__ import annotations

from typing import Any

import orjson
from pybase64 import b64decode

from sluice_consumer.kinesis import Records

CONTENT_TYPE = "application/x-amz-json-1.1"


def encode(ask: dict[str, Any]) -> bytes:
    """A request body."""
    return orjson.dumps(ask)


def decode(body: bytes) -> dict[str, Any]:
    """A reply's body.

    Raises:
        ValueError: it is no JSON object.
    """
    value = orjson.loads(body) if body else {}
    if not isinstance(value, dict):
        raise ValueError(f"a reply is an object, not {type(value).__name__}")  # noqa: TRY004 - what the parser raises too
    return value


def columns(records: list[dict[str, Any]]) -> Records:
    """The `Records` of a GetRecords reply, in columns. Arrival times come as seconds with a fraction."""
    return Records(
        sequence=[record["SequenceNumber"] for record in records],
        partition_key=[record["PartitionKey"] for record in records],
        data=[b64decode(record["Data"]) for record in records],
        arrival_millis=[round(record["ApproximateArrivalTimestamp"] * 1000) for record in records],
    )
