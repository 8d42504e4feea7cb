from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, NoCredentialsError, ReadTimeoutError

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.errors import AccessDenied, Refused, ServiceUnavailable
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog, shard_from_reply
from sluice_checkpoints.stream.model import Shard, StreamIdentity, StreamNotFound

FIRST, SECOND = "Fri, 21 Nov 2025 05:00:00 GMT", "Fri, 21 Nov 2025 05:00:07 GMT"
SECOND_MILLIS = 1_763_701_207_000
A = {
    "ShardId": "shardId-000000000000",
    "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "99"},
    "SequenceNumberRange": {"StartingSequenceNumber": "4900", "EndingSequenceNumber": "4910"},
}
B = {
    "ShardId": "shardId-000000000001",
    "ParentShardId": "shardId-000000000000",
    "AdjacentParentShardId": "shardId-000000000007",
    "HashKeyRange": {"StartingHashKey": "100", "EndingHashKey": str(2**128 - 1)},
    "SequenceNumberRange": {"StartingSequenceNumber": "4911"},
}


def page(*shards: dict[str, Any], token: str | None = None, date: str | None = FIRST) -> dict[str, Any]:
    return {
        "Shards": list(shards),
        "ResponseMetadata": {"HTTPHeaders": {"date": date} if date else {}},
        **({"NextToken": token} if token else {}),
    }


def error(code: str, status: int = 400) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "said the service"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Operation")


@dataclass
class Api:
    answers: list[Any]
    asked: list[dict[str, Any]] = field(default_factory=list)

    def list_shards(self, **ask: Any) -> Any:
        self.asked.append(ask)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    describe_stream_summary = get_shard_iterator = list_shards


@dataclass
class Time:
    now: float = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


Catalog = Callable[..., BotoStreamCatalog]


@pytest.fixture
def catalog() -> Catalog:
    def make(*answers: Any) -> BotoStreamCatalog:
        time = Time()
        made = BotoStreamCatalog(
            StreamAddress("orders", "eu-west-1"), patience=Patience(limit=30, clock=lambda: time.now, sleep=time.sleep, dice=lambda: 1.0)
        )
        made.__dict__["_client"] = Api(list(answers))
        return made

    return make


def test_a_stream_is_described(catalog: Catalog) -> None:
    summary = {
        "StreamName": "orders",
        "StreamARN": "arn:orders",
        "StreamCreationTimestamp": datetime(2025, 11, 21, 5, 0, 7, 250_000, tzinfo=UTC),
        "RetentionPeriodHours": 48,
        "StreamStatus": "UPDATING",
    }
    found = catalog({"StreamDescriptionSummary": summary}).describe()
    assert found == StreamIdentity("orders", "arn:orders", SECOND_MILLIS + 250, 172_800_000, "UPDATING")


def test_a_shard_is_read_with_its_parents_and_whether_it_is_closed() -> None:
    """An open one has no last number; hash keys are numbers, for they are compared."""
    assert shard_from_reply(A) == Shard("shardId-000000000000", (), 0, 99, "4900", "4910")
    merged = shard_from_reply(B)
    assert merged == Shard("shardId-000000000001", ("shardId-000000000000", "shardId-000000000007"), 100, 2**128 - 1, "4911")
    assert (shard_from_reply(A).closed, merged.closed) == (True, False)


def test_every_page_is_followed_and_the_last_one_dates_the_listing(catalog: Catalog) -> None:
    """Of later pages only the token is sent: the API refuses a name beside it. The shards are in order."""
    made = catalog(page(B, token="more"), page(A, date=SECOND))
    listed = made.list_shards()
    assert [shard.id for shard in listed.shards] == [A["ShardId"], B["ShardId"]]
    assert listed.date_millis == SECOND_MILLIS
    assert made._client.asked == [{"StreamName": "orders"}, {"NextToken": "more"}]


def test_a_listing_whose_token_expired_begins_again(catalog: Catalog) -> None:
    made = catalog(page(A, token="old"), error("ExpiredNextTokenException"), page(A, token="new"), page(B))
    assert [shard.id for shard in made.list_shards().shards] == [A["ShardId"], B["ShardId"]]


@pytest.mark.parametrize(
    "passing",
    [
        error("LimitExceededException"),
        error("ThrottlingException"),
        error("InternalFailure", 500),
        error("Whatever", 503),
        ReadTimeoutError(endpoint_url="https://kinesis"),
        ConnectionClosedError(endpoint_url="https://kinesis"),
    ],
    ids=lambda e: type(e).__name__ + str(e)[:60],
)
def test_what_passes_is_tried_again(catalog: Catalog, passing: Exception) -> None:
    assert catalog(passing, passing, page(A)).list_shards().shards == (shard_from_reply(A),)


def test_trying_again_has_an_end(catalog: Catalog) -> None:
    with pytest.raises(ServiceUnavailable, match="ListShards of stream orders"):
        catalog(error("LimitExceededException")).list_shards()


def test_a_stream_that_is_not_there_is_named_with_its_region(catalog: Catalog) -> None:
    """A wrong region is the usual reason."""
    with pytest.raises(StreamNotFound, match="stream orders does not exist in eu-west-1"):
        catalog(error("ResourceNotFoundException")).describe()


@pytest.mark.parametrize("reason", [error("AccessDeniedException"), NoCredentialsError()], ids=["denied", "no credentials"])
def test_what_does_not_pass_is_said_at_once(catalog: Catalog, reason: Exception) -> None:
    """With the operation, for that is what a policy has to allow."""
    made = catalog(reason, page(A))
    with pytest.raises(Refused, match="DescribeStreamSummary of stream orders"):
        made.describe()
    assert len(made._client.asked) == 1


def test_a_key_that_the_reader_may_not_use_is_told_with_what_is_missing(catalog: Catalog) -> None:
    with pytest.raises(AccessDenied, match="needs kms:Decrypt on the key of the stream; the policy of the key has to allow it, too"):
        catalog(error("KMSAccessDeniedException")).list_shards()


# -- whose number is it ------------------------------------------------------------------------------------------------------------

PLACES = [("shardId-000000000000", "4905"), ("shardId-000000000001", "4999")]


def test_a_number_that_the_service_accepts_is_its_own(catalog: Catalog) -> None:
    """One GetShardIterator a place; a place named twice is asked about once."""
    made = catalog({"ShardIterator": "x"})
    assert made.disowned([*PLACES, *PLACES]) == {}
    shard, number = PLACES[0]
    ask = {"StreamName": "orders", "ShardId": shard, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": number}
    assert len(made._client.asked) == 2
    assert ask in made._client.asked


def test_a_number_that_the_service_does_not_accept_is_told_in_its_words(catalog: Catalog) -> None:
    answers = catalog(error("InvalidArgumentException")).disowned(PLACES)
    assert list(answers) == PLACES
    assert all("InvalidArgumentException: said the service" in why for why in answers.values())


def test_a_shard_that_expired_since_it_was_listed_disowns_nothing(catalog: Catalog) -> None:
    """Nobody can say whose its numbers were."""
    assert catalog(error("ResourceNotFoundException")).disowned(PLACES) == {}


def test_throttling_does_not_disown_a_number(catalog: Catalog) -> None:
    """The stream's consumers share the limit."""
    assert catalog(error("ProvisionedThroughputExceededException"), {"ShardIterator": "x"}).disowned(PLACES) == {}


@pytest.mark.parametrize(("answer", "ends"), [("AccessDeniedException", Refused), ("InternalFailure", ServiceUnavailable)])
def test_whoever_cannot_ask_knows_nothing(catalog: Catalog, answer: str, ends: type[Exception]) -> None:
    with pytest.raises(ends, match="GetShardIterator of stream orders"):
        catalog(error(answer)).disowned(PLACES)


def test_a_listing_without_a_date_is_refused(catalog: Catalog) -> None:
    """LATEST cannot be pinned to the clock of this machine."""
    with pytest.raises(Refused, match="Date"):
        catalog(page(A, date=None)).list_shards()


def test_a_catalog_travels_to_executors_without_its_client() -> None:
    made = BotoStreamCatalog(StreamAddress("orders", "eu-west-1", "http://127.0.0.1:1"))
    made.__dict__["_client"] = Api([])
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own bytes
    assert again.address == StreamAddress("orders", "eu-west-1", "http://127.0.0.1:1")
    assert "_client" not in again.__dict__


def test_a_listing_whose_tokens_always_expire_has_an_end(catalog: Catalog) -> None:
    made = catalog(*[page(A, token="old"), error("ExpiredNextTokenException")] * 20)
    with pytest.raises(ServiceUnavailable, match="ListShards of stream orders: its token expired 5 times"):
        made.list_shards()
