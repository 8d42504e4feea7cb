"""The replayed Kinesis answers as the service does where a reader depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from takeover import handmade
from takeover.handmade import AGGREGATE, PARENTS, RECORDS, STREAM, arrival, sequence, shard_id
from takeover.replay import AFTER_THE_LAST, Replay, serve

from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_consumer.shards.aggregation import MAGIC


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serve(Replay(handmade.dump("any", {}, []).streams)) as endpoint:
        yield endpoint


@pytest.fixture
def kinesis(endpoint: str) -> Any:
    return boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1")


def iterator(kinesis: Any, shard: int, kind: str = "TRIM_HORIZON", **more: object) -> str:
    return str(kinesis.get_shard_iterator(StreamName=STREAM, ShardId=shard_id(shard), ShardIteratorType=kind, **more)["ShardIterator"])


def test_shards_are_listed_in_pages_with_the_recorded_time(endpoint: str) -> None:
    """Five shards take two pages; a catalog that stopped after the first would miss the merged one."""
    listed = BotoStreamCatalog(StreamAddress(STREAM, "us-east-1", endpoint)).list_shards()
    assert {shard.id: shard.parents for shard in listed.shards} == {shard_id(i): tuple(map(shard_id, parents)) for i, parents in PARENTS.items()}
    assert listed.date_millis == 1000 * (arrival(4, RECORDS - 1) + AFTER_THE_LAST)


@pytest.mark.parametrize(
    ("kind", "more", "first"),
    [
        ("TRIM_HORIZON", {}, 0),
        ("AT_SEQUENCE_NUMBER", {"StartingSequenceNumber": sequence(2, 3)}, 3),
        ("AFTER_SEQUENCE_NUMBER", {"StartingSequenceNumber": sequence(2, 3)}, 4),
        ("AT_TIMESTAMP", {"Timestamp": arrival(2, 2)}, 2),
        ("AT_TIMESTAMP", {"Timestamp": arrival(2, 2) + 0.001}, 3),
        ("LATEST", {}, RECORDS),
    ],
)
def test_an_iterator_begins_where_its_kind_says(kinesis: Any, kind: str, more: dict[str, Any], first: int) -> None:
    reply = kinesis.get_records(ShardIterator=iterator(kinesis, 2, kind, **more))
    assert [record["SequenceNumber"] for record in reply["Records"]] == [sequence(2, n) for n in range(first, RECORDS)]


def test_a_closed_shard_ends_with_its_children_and_an_open_one_does_not_end(kinesis: Any) -> None:
    page = kinesis.get_records(ShardIterator=iterator(kinesis, 3), Limit=RECORDS - 1)
    assert page["MillisBehindLatest"] > 0
    assert "ChildShards" not in page
    page = kinesis.get_records(ShardIterator=page["NextShardIterator"])
    assert len(page["Records"]) == 1
    assert "NextShardIterator" not in page
    assert [(child["ShardId"], child["ParentShards"]) for child in page["ChildShards"]] == [(shard_id(4), [shard_id(3), shard_id(1)])]
    assert "NextShardIterator" in kinesis.get_records(ShardIterator=iterator(kinesis, 4, "LATEST"))


def test_user_records_are_aggregated_again(kinesis: Any) -> None:
    found = kinesis.get_records(ShardIterator=iterator(kinesis, 0))["Records"]
    assert [record["Data"].startswith(MAGIC) for record in found] == [n == AGGREGATE for n in range(RECORDS)]


@pytest.mark.parametrize(
    ("call", "ask", "code"),
    [
        ("get_records", {"ShardIterator": "from somewhere else"}, "InvalidArgumentException"),
        ("get_records", {"ShardIterator": "WzFd"}, "InvalidArgumentException"),
        ("list_shards", {"StreamName": STREAM, "NextToken": "any"}, "InvalidArgumentException"),
        ("list_shards", {"NextToken": "from somewhere else"}, "InvalidArgumentException"),
        ("describe_stream_summary", {"StreamName": "no-such"}, "ResourceNotFoundException"),
        ("get_shard_iterator", {"StreamName": STREAM, "ShardId": shard_id(9), "ShardIteratorType": "LATEST"}, "ResourceNotFoundException"),
        ("describe_limits", {}, "UnknownOperationException"),
    ],
)
def test_what_the_service_refuses_is_refused(kinesis: Any, call: str, ask: dict[str, str], code: str) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(kinesis, call)(**ask)
    assert refused.value.response["Error"]["Code"] == code


@pytest.mark.parametrize(
    "more",
    [
        {"kind": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": "1"},
        {"kind": "AT_TIMESTAMP", "Timestamp": arrival(4, RECORDS) + AFTER_THE_LAST},
    ],
    ids=["another stream's number", "a time to come"],
)
def test_a_place_that_is_not_in_the_stream_is_refused(kinesis: Any, more: dict[str, Any]) -> None:
    with pytest.raises(ClientError, match="InvalidArgumentException"):
        iterator(kinesis, 2, **more)
