"""What comes first from a position on, as Kinesis shows it: whether a record is gone, and which closed shards hold one since a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.first_records import CALLS, BotoPassedRecords, BotoRecentRecords

A, GONE = "shardId-000000000000", "shardId-000000000001"
MILLIS = 1_700_000_000_123


def page(*sequences: str, behind: int = 1000, more: bool = True) -> dict[str, Any]:
    records = [{"SequenceNumber": sequence} for sequence in sequences]
    return {"Records": records, "MillisBehindLatest": behind} | ({"NextShardIterator": "next"} if more else {})


class Api:
    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.asked, self.reads = list(answers), list[dict[str, Any]](), 0

    def get_shard_iterator(self, **ask: Any) -> Any:
        self.asked.append(ask)
        if ask["ShardId"] == GONE:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "x")
        return {"ShardIterator": "first"}

    def get_records(self, **ask: Any) -> Any:
        self.asked.append(ask)
        self.reads += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def catalog(api: Api, **address: Any) -> BotoStreamCatalog:
    found = BotoStreamCatalog(StreamAddress("orders", "us-east-1", **address), patience=Patience(limit=0))
    found.__dict__["_client"] = api
    return found


@pytest.mark.parametrize(
    ("answers", "passed"),
    [
        ([page("150")], False),
        ([page("151")], True),
        ([page(behind=5), page("150")], False),
        ([page(behind=5), page("160")], True),
        ([page(behind=0)], True),
        ([page(more=False)], True),
        ([page(behind=5)], False),
    ],
    ids=["it is there", "a later one is first", "found late", "a later one is found late", "nothing up to the tip", "a closed shard", "not known"],
)
def test_a_record_is_gone_only_if_kinesis_shows_it(answers: list[dict[str, Any]], *, passed: bool) -> None:
    api = Api(*answers)
    records = BotoPassedRecords(catalog(api), lambda _seconds: None)
    assert records.passed([(A, "150")]) == (frozenset({(A, "150")}) if passed else frozenset())
    assert (api.asked[0]["ShardIteratorType"], api.asked[0]["StartingSequenceNumber"]) == ("AT_SEQUENCE_NUMBER", "150")
    assert api.reads <= CALLS
    assert records.passed([(GONE, "150")]) == frozenset({(GONE, "150")})


@pytest.mark.parametrize(
    ("answers", "holds"),
    [
        ([page("1")], True),
        ([page(), page("1")], True),
        ([page(more=False)], False),
        ([page(behind=0)], False),
        ([page(behind=0), page("1")], True),
        ([page(), page(behind=0), page(), page("1")], True),
        ([page(), page(more=False)], False),
        ([page()], True),
    ],
    ids=[
        "at once",
        "after empty replies",
        "its end",
        "the tip",
        "readable after a reply from the tip",
        "readable later",
        "its end after empty replies",
        "not known",
    ],
)
def test_a_shard_holds_no_record_only_if_kinesis_shows_it(answers: list[dict[str, Any]], *, holds: bool) -> None:
    """In doubt it is read again, which finds nothing."""
    api = Api(*answers)
    records = BotoRecentRecords(catalog(api), lambda _seconds: None)
    assert records.since([A], MILLIS) == (frozenset({A}) if holds else frozenset())
    assert (api.asked[0]["ShardIteratorType"], api.asked[0]["Timestamp"]) == ("AT_TIMESTAMP", datetime.fromtimestamp(MILLIS / 1000, UTC))
    assert api.reads <= CALLS
    assert records.since([GONE], MILLIS) == frozenset()


def test_a_stream_of_another_account_is_asked_by_its_arn() -> None:
    """Its name alone would be that of another stream, in the caller's account."""
    arn, api = "arn:aws:kinesis:us-east-1:444455556666:stream/orders", Api(page("1"))
    assert BotoRecentRecords(catalog(api, arn=arn)).since([A], MILLIS) == frozenset({A})
    assert [(each.get("StreamARN"), each.get("StreamName")) for each in api.asked] == [(arn, None), (arn, None)]
