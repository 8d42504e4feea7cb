"""The two wire formats of Kinesis, as one value each: JSON with base64 payloads, and CBOR (`cbor`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pybase64 import b64decode

from sluice_checkpoints.errors import Refused
from sluice_consumer.kinesis import cbor
from sluice_consumer.kinesis.client import Records

ENCODING = "SLUICE_KINESIS_ENCODING"
"""The environment variable that names the format of records: `cbor` (default) or `json`."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How calls are written and replies read.

    Attributes:
        decode: a reply's body as a map, its `Records` as `RecordColumns`. Raises ValueError if it is none, or not what Kinesis says.
    """

    content_type: str
    encode: Callable[[dict[str, Any]], bytes]
    decode: Callable[[bytes], dict[str, Any]]


def decode(body: bytes) -> dict[str, Any]:
    """A reply in JSON.

    Raises:
        ValueError: it is no JSON object, or its records are not Kinesis'.
    """
    value = orjson.loads(body) if body else {}
    if not isinstance(value, dict):
        raise ValueError(f"a reply is an object, not {type(value).__name__}")  # noqa: TRY004 - what the parser raises too
    return value | {"Records": columns(value["Records"])} if "Records" in value else value


def columns(records: list[dict[str, Any]]) -> Records:
    """The `Records` of a GetRecords reply, in columns. Arrival times come as seconds with a fraction."""
    return Records(
        sequence=[record["SequenceNumber"] for record in records],
        partition_key=[record["PartitionKey"] for record in records],
        data=[b64decode(record["Data"]) for record in records],
        arrival_millis=[round(record["ApproximateArrivalTimestamp"] * 1000) for record in records],
    )


JSON = Codec("application/x-amz-json-1.1", orjson.dumps, decode)
CBOR = Codec(cbor.CONTENT_TYPE, cbor.encode, cbor.decode)


def chosen(environment: Mapping[str, str] = os.environ) -> Codec:
    """The format that the environment asks for.

    Raises:
        Refused: it names none.
    """
    asked = environment.get(ENCODING) or "cbor"
    codec = {"cbor": CBOR, "json": JSON}.get(asked.lower())
    if codec is None:
        raise Refused(f"{ENCODING}: {asked!r} is neither cbor nor json")
    return codec
