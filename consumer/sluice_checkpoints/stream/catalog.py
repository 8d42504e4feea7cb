"""The stream's identity and shards from Kinesis itself, through boto3: a few calls an hour, so nothing here is tuned."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from sluice_checkpoints.aws import denials
from sluice_checkpoints.aws.boto_clients import attempted, kept_client, passing
from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.aws.role_sessions import credentials_of
from sluice_checkpoints.aws.signed_http import service_url
from sluice_checkpoints.errors import AccessDenied, Refused, ServiceUnavailable
from sluice_checkpoints.stream.address import STREAM_NAME, StreamAddress
from sluice_checkpoints.stream.model import Shard, ShardList, ShardPlace, StreamIdentity, StreamNotFound

MILLIS_PER_HOUR = 3_600_000
TIMEOUT_SECONDS = 10
LISTINGS = 5  # whose token expired, one after the other
THREADS = 8  # GetShardIterator: 5 calls a second and shard, and each shard is asked once


class BotoStreamCatalog:
    """`PositionCatalog` over boto3. Cheap to make and to pickle: the client is made at the first call.

    Attributes:
        address: the stream; calls are made as its role, if it has one.
        patience: how long throttling and failures are retried.
    """

    def __init__(self, address: StreamAddress, patience: Patience | None = None) -> None:
        self.address, self.patience = address, patience or Patience()

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.address.name

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_client"}

    @cached_property
    def _client(self) -> Any:
        """Always at one address: for a StreamARN botocore would call a host of its own for each account, and `kinesis.http` would not."""
        address = self.address
        config = Config(
            retries={"total_max_attempts": 1},
            connect_timeout=TIMEOUT_SECONDS,
            read_timeout=TIMEOUT_SECONDS,
            use_fips_endpoint=False,  # the address has been chosen by then
            use_dualstack_endpoint=False,
        )
        url = address.endpoint or service_url("kinesis", address.region)
        return kept_client("kinesis", address.region, url, config, credentials_of(address.role, address.region))

    def describe(self) -> StreamIdentity:
        if not STREAM_NAME.fullmatch(self.name):
            raise Refused(f"{self.name!r} is not a stream name: 1 to 128 of a-z, A-Z, 0-9, '_', '-' and '.'; of an ARN it is what follows stream/")
        reply = self.call("DescribeStreamSummary", "describe_stream_summary", self.address.stream)
        summary = reply["StreamDescriptionSummary"]
        self.address.check(summary["StreamARN"])
        return StreamIdentity(
            name=summary["StreamName"],
            arn=summary["StreamARN"],
            created_millis=_millis(summary["StreamCreationTimestamp"]),
            retention_millis=summary["RetentionPeriodHours"] * MILLIS_PER_HOUR,
            status=summary["StreamStatus"],
        )

    def list_shards(self) -> ShardList:
        for _ in range(LISTINGS):
            with contextlib.suppress(_TokenExpired):
                return self._list_once()
        raise ServiceUnavailable(f"ListShards of stream {self.name}: its token expired {LISTINGS} times; it lives 300 s, and a listing takes seconds")

    def _list_once(self) -> ShardList:
        shards: list[Shard] = []
        ask: dict[str, Any] = dict(self.address.stream)
        while True:
            reply = self.call("ListShards", "list_shards", ask)
            shards += [shard_from_reply(shard) for shard in reply["Shards"]]
            if not reply.get("NextToken"):
                return ShardList(tuple(sorted(shards, key=lambda shard: shard.id)), _date(reply))
            ask = {"NextToken": reply["NextToken"]} | self.address.stream_arn  # the API refuses a StreamName beside it

    def disowned(self, places: Iterable[ShardPlace]) -> dict[ShardPlace, str]:
        """See `PositionCatalog.disowned`. Several shards at a time; the client has to be made before, by any other call."""
        asked = list(dict.fromkeys(places))
        with ThreadPoolExecutor(THREADS) as pool:
            return {place: why for place, why in zip(asked, pool.map(self._disowned, asked), strict=True) if why is not None}

    def _disowned(self, place: ShardPlace) -> str | None:
        shard_id, sequence = place
        where = {"ShardId": shard_id, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": sequence}
        try:
            self.call("GetShardIterator", "get_shard_iterator", self.address.stream | where)
        except StreamNotFound:  # the stream was just described: the shard expired since it was listed
            return None
        except _InvalidArgument as invalid:
            return str(invalid)
        return None

    def call(self, what: str, method: str, ask: dict[str, Any]) -> Any:
        """The reply to a call of the client's `method`; `what` is the action's name in the API.

        Raises:
            StreamNotFound, Refused, ServiceUnavailable: as for `describe`.
        """

        def attempt() -> Any:
            return attempted(
                lambda: getattr(self._client, method)(**ask),
                named=lambda error: self._named(what, error),
                refused=lambda error: Refused(f"{what} of stream {self.name}: {error}"),
            )

        return self.patience.call(f"{what} of stream {self.name}", attempt)

    def _named(self, what: str, error: ClientError) -> Exception:
        if again := passing(error):
            return again
        code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
        if code == "ExpiredNextTokenException":
            return _TokenExpired()
        if code == "ResourceNotFoundException":
            return StreamNotFound(f"stream {self.name} does not exist in {self.address.region}: {message}")
        refusal = f"{what} of stream {self.name} was refused: {code}: {message}"
        if advice := denials.of_call(code, message):
            return AccessDenied(f"{refusal}; {advice}")
        return (_InvalidArgument if code == "InvalidArgumentException" else Refused)(refusal)


class _InvalidArgument(Refused):
    """The service knows the call and the stream, and does not accept a value."""


class _TokenExpired(Exception):
    """The listing took longer than its page token lives."""


def shard_from_reply(shard: Mapping[str, Any]) -> Shard:
    """A shard from one entry of a ListShards reply."""
    hashes, numbers = shard["HashKeyRange"], shard["SequenceNumberRange"]
    return Shard(
        id=shard["ShardId"],
        parents=tuple(shard[key] for key in ("ParentShardId", "AdjacentParentShardId") if shard.get(key)),
        starting_hash=int(hashes["StartingHashKey"]),
        ending_hash=int(hashes["EndingHashKey"]),
        starting_sequence=numbers["StartingSequenceNumber"],
        ending_sequence=numbers.get("EndingSequenceNumber"),
    )


def _millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _date(reply: Mapping[str, Any]) -> int:
    """The service's clock; shards of a service that sends none cannot be pinned to a time."""
    header = reply["ResponseMetadata"]["HTTPHeaders"].get("date")
    if header is None:
        raise Refused("ListShards came without a Date header: an emulator or proxy in between drops it")
    return _millis(parsedate_to_datetime(header))
