"""`KinesisClient` over signed HTTP (`signed_http`), with own codecs.

boto3's `get_records` costs several times the CPU of everything else in a task (docs/performance.md), so it is not on this path. All streams that a
process reads share connections and credentials, and all readers of a stream its pace. Records are asked for in CBOR, as the Java SDK does; a service
that does not speak it (emulators) is asked in JSON from then on. The environment may ask for JSON from the first call on (`codec.chosen`).
"""

from __future__ import annotations

import functools
import logging
import math
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from sluice_checkpoints.aws import signed_http
from sluice_checkpoints.aws.connections import TimeLimits
from sluice_checkpoints.aws.retry import NO_LISTENER, Again, Listener, Once, Patience
from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.aws.role_sessions import credentials_of
from sluice_checkpoints.aws.signed_http import Service, SignedHttp
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import Child
from sluice_checkpoints.stream.address import StreamAddress
from sluice_consumer.kinesis.client import IteratorExpired, Page, iterator_type
from sluice_consumer.kinesis.codec import CBOR, ENCODING, JSON, Codec, chosen
from sluice_consumer.kinesis.failures import EXPIRED, Failure, UnsupportedEncoding, failure
from sluice_consumer.kinesis.pacing import Pacer

log = logging.getLogger(__name__)
KINESIS = Service("kinesis", "Kinesis_20131202.")
CONNECTIONS = 32
SWITCH = f"to skip this attempt, set {ENCODING}=json"
WAITS = TimeLimits(connect=5.0, read=15.0)  # a reply of 10 MiB takes a second or two
ONCE_SECONDS = 2.0  # for a call that is tried once: others wait for it


@dataclass(frozen=True, slots=True)
class KinesisReply:
    """A successful reply: its content, and the service's clock (epoch milliseconds, 0: unknown)."""

    content: dict[str, Any]
    server_millis: int


class KinesisCalls:
    """Kinesis' calls over signed HTTP. Thread safe.

    Attributes:
        codec: in which records are asked for; JSON as soon as the service turns out not to speak CBOR.
    """

    def __init__(self, http: SignedHttp, codec: Codec = CBOR, *, elsewhere: bool = False) -> None:
        """`elsewhere`: not at AWS's own address.

        An emulator may fail over CBOR without a word (moto: 500); one that never spoke it is asked in JSON.
        """
        self._http, self.codec, self._may_lack_cbor = http, codec, elsewhere

    def post(self, action: str, ask: dict[str, Any], codec: Codec, seconds: float = math.inf) -> KinesisReply:
        """One call, made once; it may take so many seconds.

        Raises:
            Again: it may succeed if it is made again.
            UnsupportedEncoding: the service does not speak CBOR, or not as Kinesis does.
            IteratorExpired, ShardNotFound, Refused: see `failures`.
        """
        reply = self._http.post(action, codec.content_type, codec.encode(ask), seconds)
        if reply.status != 200:
            refusal = Failure.of(reply.status, reply.headers.get("x-amzn-errortype", ""), _failure_content(reply))
            of_format = refusal.of_format or (self._may_lack_cbor and refusal.is_crash)
            raise UnsupportedEncoding(refusal.text) if codec is CBOR and of_format else failure(refusal)
        try:
            content = codec.decode(reply.data)
            self._may_lack_cbor &= codec is not CBOR
            return KinesisReply(content, _date(reply.headers.get("date")))
        except (ValueError, KeyError, TypeError) as error:
            kind = UnsupportedEncoding if codec is CBOR else Again
            raise kind(f"a reply that is not {codec.content_type}: {error!r}") from error


class HttpKinesis:
    """One stream. Thread safe."""

    def __init__(self, address: StreamAddress, wire: KinesisCalls, pacer: Pacer, patience: Patience | None = None, seconds: float = math.inf) -> None:
        """`seconds`: that a call may take."""
        self._address, self._wire, self._pacer, self._seconds = address, wire, pacer, seconds
        self._patience = patience or _patience(address)

    def get_iterator(self, shard_id: str, position: Position) -> str:
        """See `KinesisClient.get_iterator`. Always in JSON: in CBOR the unit of a time that is sent depends on whom one asks."""
        ask = {**self._address.stream, "ShardId": shard_id, **iterator_type(position)}
        return str(self._call("GetShardIterator", shard_id, ask, JSON).content["ShardIterator"])

    def get_records(self, shard_id: str, iterator: str, limit: int) -> Page:
        ask = {"ShardIterator": iterator, "Limit": limit, **self._address.stream_arn}
        try:
            reply = self._call("GetRecords", shard_id, ask, self._wire.codec)
        except UnsupportedEncoding as why:
            log.warning("stream %s: the service does not speak CBOR (%s): falling back to JSON; %s", self._address.name, why, SWITCH)
            self._wire.codec = JSON
            reply = self._call("GetRecords", shard_id, ask, JSON)
        page = _page(reply)
        if len(page.records):
            self._pacer.after(shard_id, int(page.records.totals()[-1]))
        return page

    def _call(self, action: str, shard_id: str, ask: dict[str, Any], codec: Codec) -> KinesisReply:
        def attempt() -> KinesisReply:
            self._pacer.before(action, shard_id)
            return self._wire.post(action, ask, codec, self._seconds)

        try:
            return self._patience.call(f"{action} of {shard_id} in stream {self._address.name}", attempt)
        except IteratorExpired:
            self._patience.listener.again(action, EXPIRED)  # by the caller, with a new iterator
            raise


def _page(reply: KinesisReply) -> Page:
    content = reply.content
    return Page(
        records=content["Records"],
        next_iterator=content.get("NextShardIterator") or None,  # CBOR has two words for nothing
        behind_millis=int(content.get("MillisBehindLatest") or 0),
        children=_children(content.get("ChildShards")),
        server_millis=reply.server_millis,
    )


def _children(listed: list[dict[str, Any]] | None) -> tuple[Child, ...] | None:
    return tuple(Child(c["ShardId"], frozenset(c["ParentShards"])) for c in listed) if listed else None


def _failure_content(reply: signed_http.ServiceReply) -> dict[str, Any]:
    """The content of a failed reply, in whatever it is written; proxies and load balancers answer in HTML."""
    for codec in (JSON, CBOR):
        try:
            return codec.decode(reply.data)
        except (ValueError, KeyError, TypeError):
            continue
    return {}


def _date(header: str | None) -> int:
    """0 without a header: this machine's clock may be ahead, and an idle shard's TIMESTAMP must not follow it over records."""
    return round(parsedate_to_datetime(header).timestamp() * 1000) if header else 0


@functools.cache
def _calls(region: str, endpoint: str | None, role: AssumedRole | None = None) -> KinesisCalls:
    http = signed_http.connect(KINESIS, region, endpoint, WAITS, CONNECTIONS, credentials_of(role, region))
    return KinesisCalls(http, chosen(), elsewhere=endpoint is not None)


def _pacer(address: StreamAddress) -> Pacer:
    """Of a stream: limits are a shard's, and the first shard of every stream has the same id. An ARN says which stream it is, whoever reads it."""
    return _paced(replace(address, role=None if address.arn else address.role, deadline_seconds=0.0))


@functools.cache
def _paced(_stream: StreamAddress) -> Pacer:
    return Pacer()


def _patience(address: StreamAddress, listener: Listener = NO_LISTENER) -> Patience:
    return Patience(limit=address.deadline_seconds, first=0.1, cap=5.0, listener=listener)


@functools.cache
def connect(address: StreamAddress, listener: Listener = NO_LISTENER) -> HttpKinesis:
    """The client of a stream; one a process, address and listener. For listeners that live as long as the process (`client`).

    Raises:
        Refused: see `codec.chosen`.
    """
    return client(address, listener)


def client(address: StreamAddress, listener: Listener, *, once: bool = False) -> HttpKinesis:
    """A client of a stream, which is the caller's. It shares connections, credentials and pace with all others of the process.

    `once`: it tries each call once, for two seconds, and raises `Again` if that may succeed later.

    Raises:
        Refused: see `codec.chosen`.
    """
    calls = _calls(address.region, address.endpoint, address.role)
    if once:
        return HttpKinesis(address, calls, _pacer(address), Once(listener=listener), ONCE_SECONDS)
    return HttpKinesis(address, calls, _pacer(address), _patience(address, listener))
