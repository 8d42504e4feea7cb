"""What Kinesis says when a call fails, and what that means to the caller. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluice_checkpoints.aws import denials
from sluice_checkpoints.aws.retry import EXPIRED as EXPIRED_TOKENS
from sluice_checkpoints.aws.retry import EXPIRED_ADVICE, Again, may_pass
from sluice_checkpoints.aws.signed_http import refusal
from sluice_checkpoints.errors import AccessDenied, Refused
from sluice_consumer.kinesis.client import IteratorExpired, ShardNotFound

ADVICE = {
    denials.DENIED: "roleArn, or the pod's role without it, needs kinesis:GetShardIterator, GetRecords, ListShards and DescribeStreamSummary",
    "InvalidSignatureException": "check the credentials and this machine's clock",
    "UnrecognizedClientException": "check the credentials",
    "403": "check the credentials",  # of an emulator or a proxy, without a code of Kinesis'
}


# What services say to a request whose format they do not know; 415 is HTTP's own word for it.
UNKNOWN_FORMAT = frozenset({"SerializationException", "UnknownOperationException", "UnsupportedMediaTypeException"})
UNSUPPORTED_MEDIA_TYPE = 415
EXPIRED = "ExpiredIteratorException"


class UnsupportedEncoding(Exception):
    """The service does not speak a wire format: ask in another one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed: HTTP status, error code without its prefixes, message."""

    status: int
    code: str
    message: str

    @staticmethod
    def of(status: int, kind: str, body: Mapping[str, Any]) -> Failure:
        """From a reply: its status, its header `x-amzn-errortype` and its decoded body."""
        return Failure(status, *refusal(kind, body))

    @property
    def of_format(self) -> bool:
        """Whether the request's format may be to blame; the same call in JSON finds out."""
        unknown = not self.code or self.code in UNKNOWN_FORMAT
        return self.status == UNSUPPORTED_MEDIA_TYPE or (unknown and not may_pass(self.status, self.code, self.message))

    @property
    def is_crash(self) -> bool:
        """Whether the service failed without a word of Kinesis'; a proxy's 502 and 503 are of the way, not of the service."""
        return self.status == 500 and not self.code

    @property
    def text(self) -> str:
        """For messages."""
        return ": ".join(word for word in (self.code or f"HTTP {self.status}", self.message) if word)


def failure(reply: Failure) -> Exception:
    """The exception that says what to do next."""
    if reply.code == EXPIRED:
        return IteratorExpired(reply.message)
    if reply.code == "ResourceNotFoundException":
        return ShardNotFound(reply.message)
    # AT_TIMESTAMP of a moment ago, asked of a host whose clock is a little behind: it passes.
    ahead = reply.code == "InvalidArgumentException" and "cannot be greater than" in reply.message
    if may_pass(reply.status, reply.code, reply.message) or ahead:
        advice = f"; {EXPIRED_ADVICE}" if reply.code in EXPIRED_TOKENS else ""
        return Again(reply.text + advice, cause=reply.code or f"HTTP {reply.status}")
    missing = denials.of_call(reply.code, reply.message)
    sentences = (f"Kinesis refuses the call: {reply.text}", missing or ADVICE.get(reply.code or str(reply.status)))
    return (AccessDenied if missing else Refused)("; ".join(sentence for sentence in sentences if sentence))
