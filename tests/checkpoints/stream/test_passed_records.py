from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.first_records import CALLS, BotoPassedRecords

A, GONE = "shardId-000000000000", "shardId-000000000001"


def page(*sequences: str, behind: int = 1000, more: bool = True) -> dict[str, Any]:
    records = [{"SequenceNumber": sequence} for sequence in sequences]
    return {"Records": records, "MillisBehindLatest": behind} | ({"NextShardIterator": "next"} if more else {})


class Api:
    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.reads = list(answers), 0

    def get_shard_iterator(self, **ask: Any) -> Any:
        assert (ask["ShardIteratorType"], ask["StartingSequenceNumber"]) == ("AT_SEQUENCE_NUMBER", "150")
        if ask["ShardId"] == GONE:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "x")
        return {"ShardIterator": "first"}

    def get_records(self, **_: Any) -> Any:
        self.reads += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


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
    api, pauses = Api(*answers), list[float]()
    catalog = BotoStreamCatalog(StreamAddress("orders", "us-east-1"), patience=Patience(limit=0))
    catalog.__dict__["_client"] = api
    assert BotoPassedRecords(catalog, pauses.append).passed([(A, "150")]) == (frozenset({(A, "150")}) if passed else frozenset())
    assert api.reads <= CALLS
    assert BotoPassedRecords(catalog).passed([(GONE, "150")]) == frozenset({(GONE, "150")})
