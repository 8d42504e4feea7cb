"""The walk to a shard's oldest record, over replies made by hand; tests/contract/checkpoints/test_diagnose.py has the real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.diagnose.oldest_records import CALLS, PAUSE_SECONDS, BotoOldestRecords
from sluice_checkpoints.errors import AccessDenied, Refused
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog

A, B = "shardId-000000000000", "shardId-000000000001"


def error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "said the service"}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "Operation")


def page(*sequences: str, behind: int = 1000, more: bool = True) -> dict[str, Any]:
    records = [{"SequenceNumber": sequence} for sequence in sequences]
    return {"Records": records, "MillisBehindLatest": behind} | ({"NextShardIterator": "next"} if more else {})


@dataclass
class Api:
    """A client whose GetRecords answers in order; the last answer is repeated."""

    answers: list[Any]
    asked: list[dict[str, Any]] = field(default_factory=list)
    reads: int = 0

    def get_shard_iterator(self, **ask: Any) -> Any:
        self.asked.append(ask)
        if ask["ShardId"] == B:
            raise error("ResourceNotFoundException")
        return {"ShardIterator": "first"}

    def get_records(self, **ask: Any) -> Any:
        self.asked.append(ask)
        self.reads += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def walk() -> Callable[..., tuple[BotoOldestRecords, Api, list[float]]]:
    def made(*answers: Any) -> tuple[BotoOldestRecords, Api, list[float]]:
        api, pauses = Api(list(answers)), list[float]()
        catalog = BotoStreamCatalog(StreamAddress("orders", "us-east-1"), patience=Patience(sleep=lambda _: None))
        catalog.__dict__["_client"] = api
        return BotoOldestRecords(catalog, pauses.append), api, pauses

    return made


def test_the_first_record_after_the_horizon_is_the_oldest(walk: Callable[..., Any]) -> None:
    records, api, pauses = walk(page("17", "18"))
    assert records.oldest([A]) == {A: "17"}
    assert api.asked[0] == {"StreamName": "orders", "ShardId": A, "ShardIteratorType": "TRIM_HORIZON"}
    assert api.asked[1] == {"ShardIterator": "first", "Limit": 1}
    assert not pauses


def test_empty_replies_are_followed_politely(walk: Callable[..., Any]) -> None:
    """At five calls a second and shard at most, with the iterator of the last reply."""
    records, api, pauses = walk(page(), page(), page("17"))
    assert records.oldest([A]) == {A: "17"}
    assert pauses == [PAUSE_SECONDS] * 2
    assert [ask.get("ShardIterator") for ask in api.asked] == [None, "first", "next", "next"]


@pytest.mark.parametrize(("last", "calls"), [(page(behind=0), 2), (page(more=False), 2), (page(), CALLS)])
def test_a_shard_without_a_record_is_missing(walk: Callable[..., Any], last: dict[str, Any], calls: int) -> None:
    records, api, _ = walk(page(), last)
    assert records.oldest([A]) == {}
    assert api.reads == calls


def test_a_shard_that_expired_meanwhile_is_missing(walk: Callable[..., Any]) -> None:
    assert walk(page("17"))[0].oldest([A, B]) == {A: "17"}


def test_throttling_is_waited_out(walk: Callable[..., Any]) -> None:
    """Its consumer reads too."""
    assert walk(error("ProvisionedThroughputExceededException"), page("17"))[0].oldest([A]) == {A: "17"}


def test_who_may_not_read_is_told(walk: Callable[..., Any]) -> None:
    with pytest.raises(Refused, match=r"GetRecords of stream orders was refused: AccessDeniedException.*--no-records"):
        walk(error("AccessDeniedException"))[0].oldest([A])


def test_a_denial_stays_one(walk: Callable[..., Any]) -> None:
    with pytest.raises(AccessDenied, match=r"needs kms:Decrypt.*--no-records does without it"):
        walk(error("KMSAccessDeniedException"))[0].oldest([A])
