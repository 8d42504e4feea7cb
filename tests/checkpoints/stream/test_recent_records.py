"""Which closed shards hold a record since a time, as Kinesis shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.first_records import CALLS, BotoRecentRecords

A, GONE = "shardId-000000000000", "shardId-000000000001"
MILLIS = 1_700_000_000_123


def page(records: int = 0, behind: int = 1000, *, more: bool = True) -> dict[str, Any]:
    return {"Records": [{}] * records, "MillisBehindLatest": behind} | ({"NextShardIterator": "next"} if more else {})


class Api:
    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.reads = list(answers), 0

    def get_shard_iterator(self, **ask: Any) -> Any:
        assert (ask["ShardIteratorType"], ask["Timestamp"]) == ("AT_TIMESTAMP", datetime.fromtimestamp(MILLIS / 1000, UTC))
        if ask["ShardId"] == GONE:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "x")
        return {"ShardIterator": "first"}

    def get_records(self, **_: Any) -> Any:
        self.reads += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.mark.parametrize(
    ("answers", "holds"),
    [
        ([page(1)], True),
        ([page(), page(1)], True),
        ([page(more=False)], False),
        ([page(behind=0)], False),
        ([page(behind=0), page(1)], True),
        ([page(), page(behind=0), page(), page(1)], True),
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
    api, pauses = Api(*answers), list[float]()
    catalog = BotoStreamCatalog(StreamAddress("orders", "us-east-1"), Patience(limit=0))
    catalog.__dict__["_client"] = api
    assert BotoRecentRecords(catalog, pauses.append).since([A], MILLIS) == (frozenset({A}) if holds else frozenset())
    assert api.reads <= CALLS
    assert BotoRecentRecords(catalog).since([GONE], MILLIS) == frozenset()


def test_a_stream_of_another_account_is_asked_by_its_arn() -> None:
    """Its name alone would be that of another stream, in the caller's account."""
    arn, asked = "arn:aws:kinesis:us-east-1:444455556666:stream/orders", list[dict[str, Any]]()

    class Named(Api):
        def get_shard_iterator(self, **ask: Any) -> Any:
            asked.append(ask)
            return super().get_shard_iterator(**ask)

        def get_records(self, **ask: Any) -> Any:
            asked.append(ask)
            return super().get_records(**ask)

    catalog = BotoStreamCatalog(StreamAddress("orders", "us-east-1", arn=arn), Patience(limit=0))
    catalog.__dict__["_client"] = Named(page(1))
    assert BotoRecentRecords(catalog).since([A], MILLIS) == frozenset({A})
    assert [(each.get("StreamARN"), each.get("StreamName")) for each in asked] == [(arn, None), (arn, None)]
