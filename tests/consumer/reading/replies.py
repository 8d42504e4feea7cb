"""Kinesis behind a connection pool that answers from a list."""

from __future__ import annotations

import base64
import json
from typing import Any

import cbor2
import urllib3

from sluice_consumer.kinesis.codec import JSON
from sluice_consumer.kinesis.http import HttpKinesis

DATE = "Fri, 21 Nov 2025 10:00:00 GMT"
DATE_MILLIS = 1_763_719_200_000
Answer = Exception | tuple[int, bytes]


class Server:
    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, str, dict[str, Any], dict[str, str]]] = []
        self.headers = {"Date": DATE}
        self.timeout: float | None = None

    def request(self, method: str, url: str, body: bytes, headers: dict[str, str], timeout: float | None = None) -> Any:
        self.timeout = timeout
        spoken = json.loads if headers["Content-Type"] == JSON.content_type else cbor2.loads
        self.asked.append((method, url, spoken(body), headers))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return urllib3.HTTPResponse(answer[1], status=answer[0], headers=self.headers, preload_content=True)

    def says(self, *answers: Answer | dict[str, Any]) -> None:
        self.answers = [(200, json.dumps(answer).encode()) if isinstance(answer, dict) else answer for answer in answers]


def error(code: str, message: str = "", status: int = 400) -> Answer:
    return status, json.dumps({"__type": f"com.amazonaws.kinesis.v20131202#{code}", "message": message}).encode()


def spoken(server: Server) -> list[str]:
    return [headers["Content-Type"].rpartition("-amz-")[2] for _, _, _, headers in server.asked]


def get_records(kinesis: HttpKinesis) -> Any:
    return kinesis.get_records("shard", "iterator", 5)


RECORD = {"SequenceNumber": "7", "PartitionKey": "k", "Data": base64.b64encode(b"\x00x").decode(), "ApproximateArrivalTimestamp": 1.7e9 + 0.001}
PASSING: dict[str, Answer] = {
    "throughput": error("ProvisionedThroughputExceededException"),
    "limit": error("LimitExceededException"),
    "key throttled": error("KMSThrottlingException"),
    "credentials about to be refreshed": error("ExpiredTokenException"),
    "internal": error("InternalFailure", status=500),
    "a gateway": (502, b"<html>bad gateway</html>"),
    "a mesh with a rate limit": (429, b"local_rate_limited"),
    "a proxy that waited": (408, b""),
    "a clock that is off": error("InvalidSignatureException", "Signature expired: 20251121T050000Z is now earlier than 20251121T051000Z"),
    "half a reply": (200, b'{"Records": ['),
    "no connection": urllib3.exceptions.ProtocolError("reset"),
    "no answer": urllib3.exceptions.ReadTimeoutError(None, "/", "timed out"),  # type: ignore[arg-type]
    "a clock a little behind": error("InvalidArgumentException", "Timestamp cannot be greater than the current timestamp"),
}
