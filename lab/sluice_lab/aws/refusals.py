"""How services say no: throttled, or failed, each in its own format. Pure."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import cbor2

MESSAGE = "the nemesis refuses this call"
AWS_JSON = "application/x-amz-json-1.1"


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A reply that refuses a call: its status, content type and body, and the error code where it is a header."""

    status: int
    kind: str
    body: bytes
    code: str = ""


Refuse = Callable[[str, bool], RefusedCall]
"""From the content type of a call, and whether it is throttled (else it fails)."""


def aws_json(asked: str, throttled: bool) -> RefusedCall:  # noqa: FBT001 - see `Refuse`
    """As DynamoDB and Kinesis, in JSON or CBOR."""
    kind, code = asked or AWS_JSON, "ProvisionedThroughputExceededException" if throttled else "InternalServerError"
    content = {"__type": code, "message": MESSAGE}
    body = cbor2.dumps(content) if "cbor" in kind else json.dumps(content).encode()
    return RefusedCall(400 if throttled else 500, kind, body, code)


def sqs(asked: str, throttled: bool) -> RefusedCall:  # noqa: FBT001 - see `Refuse`
    """As SQS, in JSON."""
    code = "RequestThrottled" if throttled else "InternalError"
    return RefusedCall(400 if throttled else 500, asked, json.dumps({"__type": f"com.amazonaws.sqs#{code}", "message": MESSAGE}).encode(), code)


def s3(_: str, throttled: bool) -> RefusedCall:  # noqa: FBT001 - see `Refuse`
    """As S3."""
    code = "SlowDown" if throttled else "InternalError"
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{MESSAGE}</Message></Error>'
    return RefusedCall(503 if throttled else 500, "application/xml", body.encode())


def iceberg_rest(_: str, throttled: bool) -> RefusedCall:  # noqa: FBT001 - see `Refuse`
    """As a catalog of Iceberg's: a commit that gets a 500 may have happened, or not; one that gets a 429 did not."""
    status, name = (429, "TooManyRequestsException") if throttled else (500, "InternalServerError")
    return RefusedCall(status, "application/json", json.dumps({"error": {"message": MESSAGE, "type": name, "code": status}}).encode())
