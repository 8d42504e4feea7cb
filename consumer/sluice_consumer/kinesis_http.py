"""`KinesisClient` over HTTP: botocore for credentials, signing and endpoints, urllib3 for pooled connections, own codecs.

boto3's `get_records` costs several times the CPU of everything else in a task (docs/architecture.md), so it is not on this path. Connections,
credentials and pacing are shared by all shards that a process reads.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.session import Session

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.model import Child, Position
from sluice_checkpoints.retrying import Again, Patience
from sluice_consumer.kinesis import IteratorExpired, Page, ShardNotFound, iterator_type
from sluice_consumer.kinesis_codec import CONTENT_TYPE, columns, decode, encode
from sluice_consumer.pacing import Pacer

SERVICE_TARGET = "Kinesis_20131202."
CONNECTIONS = 32
TIMEOUT_SECONDS = 10.0
# API reference, GetRecords and GetShardIterator: what may pass.
TRANSIENT = frozenset({
    "InternalFailure",
    "KMSThrottlingException",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "ServiceUnavailable",
    "ThrottlingException",
})  # fmt: skip


@dataclass(frozen=True)
class StreamAddress:
    """Which stream, and where; `deadline_seconds` bounds the retries of one call."""

    name: str
    region: str
    endpoint: str | None = None
    deadline_seconds: float = 60.0


class Signer:
    """Headers of a signed request."""

    def __init__(self, region: str, endpoint: str | None) -> None:
        session = Session()
        credentials = session.get_credentials()
        if credentials is None:
            raise Refused("no AWS credentials were found; give the pod's service account a role, or set AWS_ACCESS_KEY_ID")
        self._credentials, self._region = credentials, region
        self.url = session.create_client("kinesis", region_name=region, endpoint_url=endpoint).meta.endpoint_url + "/"

    def headers(self, action: str, content_type: str, body: bytes) -> dict[str, str]:
        """The headers of one call."""
        request = AWSRequest("POST", self.url, {"Content-Type": content_type, "X-Amz-Target": SERVICE_TARGET + action}, body)
        frozen = self._credentials.get_frozen_credentials()
        SigV4Auth(Credentials(frozen.access_key, frozen.secret_key, frozen.token), "kinesis", self._region).add_auth(request)
        return dict(request.headers.items())


class HttpKinesis:
    """One stream. Thread safe."""

    def __init__(self, address: StreamAddress, signer: Signer, pool: urllib3.PoolManager, pacer: Pacer) -> None:
        self._address, self._signer, self._pool, self._pacer = address, signer, pool, pacer
        self._patience = Patience(limit=address.deadline_seconds, first=0.1, cap=5.0)

    def get_iterator(self, shard_id: str, position: Position) -> str:
        """See `KinesisClient.get_iterator`."""
        ask = {"StreamName": self._address.name, "ShardId": shard_id, **iterator_type(position)}
        reply, _, _ = self._call("GetShardIterator", shard_id, ask)
        return str(reply["ShardIterator"])

    def get_records(self, shard_id: str, iterator: str, limit: int) -> Page:
        """See `KinesisClient.get_records`."""
        reply, server_millis, size = self._call("GetRecords", shard_id, {"ShardIterator": iterator, "Limit": limit})
        self._pacer.after(shard_id, size)
        return Page(
            records=columns(reply["Records"]),
            next_iterator=reply.get("NextShardIterator"),
            behind_millis=int(reply.get("MillisBehindLatest") or 0),
            children=_children(reply.get("ChildShards")),
            server_millis=server_millis,
        )

    def _call(self, action: str, shard_id: str, ask: dict[str, Any]) -> tuple[dict[str, Any], int, int]:
        body = encode(ask)
        return self._patience.call(f"{action} of {shard_id} in {self._address.name}", lambda: self._try(action, shard_id, body))

    def _try(self, action: str, shard_id: str, body: bytes) -> tuple[dict[str, Any], int, int]:
        self._pacer.before(action, shard_id)
        headers = self._signer.headers(action, CONTENT_TYPE, body)
        try:
            reply = self._pool.request("POST", self._signer.url, body=body, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise Again(f"no answer from {self._signer.url}: {error}") from error
        if reply.status != 200:
            raise _failure(reply.status, reply.headers.get("x-amzn-errortype", ""), reply.data)
        return decode(reply.data), _date(reply.headers.get("Date")), len(reply.data)


def _failure(status: int, kind: str, body: bytes) -> Exception:
    try:
        said = json.loads(body)
    except ValueError:
        said = {}
    code = str(said.get("__type") or kind).split("#")[-1].split(":")[0]
    message = said.get("message") or said.get("Message") or ""
    if code == "ExpiredIteratorException":
        return IteratorExpired(message)
    if code == "ResourceNotFoundException":
        return ShardNotFound(message)
    if status >= 500 or code in TRANSIENT:
        return Again(f"{code or status}: {message}")
    return Refused(f"Kinesis refuses the call ({code or status}: {message})")


def _children(listed: list[dict[str, Any]] | None) -> tuple[Child, ...] | None:
    return tuple(Child(c["ShardId"], frozenset(c["ParentShards"])) for c in listed) if listed else None


def _date(header: str | None) -> int:
    moment = parsedate_to_datetime(header) if header else datetime.now(UTC)
    return round(moment.timestamp() * 1000)


@functools.cache
def _shared(region: str, endpoint: str | None) -> tuple[Signer, urllib3.PoolManager, Pacer]:
    bundle = os.environ.get("AWS_CA_BUNDLE")
    pool = urllib3.PoolManager(maxsize=CONNECTIONS, retries=False, timeout=urllib3.Timeout(TIMEOUT_SECONDS), ca_certs=bundle)
    return Signer(region, endpoint), pool, Pacer()


@functools.cache
def connect(address: StreamAddress) -> HttpKinesis:
    """The client of a stream; one a process and address."""
    return HttpKinesis(address, *_shared(address.region, address.endpoint))
