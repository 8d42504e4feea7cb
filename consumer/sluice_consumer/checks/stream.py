"""Whether the stream is there, and can be read: each call that a driver makes, once. GetRecords reads one record of one shard."""

from __future__ import annotations

import contextlib
from typing import Any

from sluice_checkpoints.aws import signed_http
from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.aws.role_sessions import credentials_of
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.stream.model import StreamIdentity, StreamNotFound
from sluice_consumer.checks import services
from sluice_consumer.checks.model import CheckFinding, CheckOutcome, StartFacts
from sluice_consumer.config import StreamConfig
from sluice_consumer.kinesis import codec
from sluice_consumer.kinesis.client import ShardNotFound
from sluice_consumer.kinesis.codec import JSON, Codec
from sluice_consumer.kinesis.failures import UnsupportedEncoding
from sluice_consumer.kinesis.http import KINESIS, SWITCH, KinesisCalls

MILLIS_PER_HOUR = 3_600_000
READY = {"ACTIVE", "UPDATING"}
# Somebody else reads this shard. The service looks at rights first.
THROTTLED = {"LimitExceededException", "ProvisionedThroughputExceededException", "ThrottlingException"}


def check_stream(facts: StartFacts) -> CheckFinding:
    """Describes the stream, and reads from it.

    Raises:
        Refused: it does not exist, or access is denied. Again: no answer.
    """
    stream = facts.given.stream
    try:
        http = signed_http.connect(KINESIS, stream.region, stream.kinesis_endpoint, facts.waits, 1, credentials_of(stream.role, stream.region))
        calls = KinesisCalls(http, elsewhere=stream.kinesis_endpoint is not None)
        identity = facts.identity = _described(calls, stream)
        facts.json_only = identity.status in READY and _readable(calls, stream, codec.chosen(facts.environment))
    except ValueError as error:
        raise services.misconfigured(error) from error
    except Again as error:
        raise services.silent(error, "kinesisEndpoint", stream.kinesis_endpoint, stream.region) from error
    return _finding(identity, json_only=facts.json_only)


def _finding(identity: StreamIdentity, *, json_only: bool) -> CheckFinding:
    status = f"{identity.arn}, {identity.status}, keeps records for {identity.retention_millis // MILLIS_PER_HOUR} h"
    if identity.status not in READY:
        return CheckFinding(CheckOutcome.WARNING, f"stream {identity.name} is {identity.status}: a driver can read it once it is ACTIVE")
    if json_only:
        return CheckFinding(CheckOutcome.WARNING, f"the service of stream {identity.name} does not speak CBOR: falling back to JSON; {SWITCH}")
    return CheckFinding(CheckOutcome.OK, status)


def _described(calls: KinesisCalls, stream: StreamConfig) -> StreamIdentity:
    try:
        summary = _call(calls, stream, "DescribeStreamSummary", stream.address.stream)["StreamDescriptionSummary"]
        stream.address.check(summary["StreamARN"])
        return StreamIdentity(
            name=summary["StreamName"],
            arn=summary["StreamARN"],
            created_millis=round(summary["StreamCreationTimestamp"] * 1000),
            retention_millis=summary["RetentionPeriodHours"] * MILLIS_PER_HOUR,
            status=summary["StreamStatus"],
        )
    except ShardNotFound as error:
        raise StreamNotFound(f"stream {stream.name} does not exist in {stream.region}: {error}") from error
    except (KeyError, TypeError) as error:
        raise Refused(f"stream.kinesisEndpoint: {stream.kinesis_endpoint} answers, but not as Kinesis does (no {error})") from error


def _readable(calls: KinesisCalls, stream: StreamConfig, wanted: Codec) -> bool:
    """Reads as a task does, and says whether the service had to be asked in JSON instead."""
    shards = _call(calls, stream, "ListShards", {**stream.address.stream, "MaxResults": 1}).get("Shards")
    if not shards:
        return False
    at = {**stream.address.stream, "ShardId": shards[0]["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    with contextlib.suppress(ShardNotFound):  # it expired since it was listed
        ask = {"ShardIterator": _call(calls, stream, "GetShardIterator", at)["ShardIterator"], "Limit": 1, **stream.address.stream_arn}
        try:
            _call(calls, stream, "GetRecords", ask, wanted)
        except UnsupportedEncoding:
            _call(calls, stream, "GetRecords", ask)
            return True
        except Again as error:
            if error.cause not in THROTTLED:
                raise
    return False


def _call(calls: KinesisCalls, stream: StreamConfig, action: str, ask: dict[str, Any], encoding: Codec = JSON) -> dict[str, Any]:
    try:
        return calls.post(action, ask, encoding).content
    except Refused as error:
        raise type(error)(f"{action} of stream {stream.name}: {error}") from error
