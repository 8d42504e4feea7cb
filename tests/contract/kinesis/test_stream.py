"""What a stream of Kinesis says of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.model import StreamNotFound
from sluice_lab.fakes.stream import MemoryStream

Make = Callable[[int], Any]


def test_a_stream_has_an_identity(service: Make) -> None:
    """A name, an ARN, the time it was made, and how long it keeps records: 24 hours unless told otherwise."""
    made = service(1)
    identity = made.catalog.describe()
    assert identity.arn.endswith(f"stream/{identity.name}")
    assert abs(identity.created_millis - made.now()) < 60_000
    assert (identity.retention_millis, identity.status) == (86_400_000, "ACTIVE")


def test_shards_share_the_hash_keys(service: Make) -> None:
    shards = service(3).catalog.list_shards().shards
    assert [shard.id for shard in shards] == [f"shardId-{i:012d}" for i in range(3)]
    assert (shards[0].starting_hash, shards[2].ending_hash) == (0, 2**128 - 1)
    assert [shard.starting_hash for shard in shards[1:]] == [shard.ending_hash + 1 for shard in shards[:-1]]
    assert not any(shard.closed or shard.parents for shard in shards)


def test_a_listing_says_when_it_was_made(service: Make) -> None:
    """By the service's clock, in whole seconds, never ahead of it."""
    made = service(1)
    before = made.now() // 1000 * 1000
    date = made.catalog.list_shards().date_millis
    assert date % 1000 == 0
    assert before - 1000 <= date <= made.now()


def test_a_split_shard_is_closed_and_has_two_children(service: Make) -> None:
    made = service(1)
    made.split("shardId-000000000000")
    parent, low, high = made.catalog.list_shards().shards
    assert parent.closed
    assert (low.parents, high.parents) == ((parent.id,), (parent.id,))
    assert (low.starting_hash, high.ending_hash) == (parent.starting_hash, parent.ending_hash)
    assert [child.id for child in made.catalog.list_shards().children_of(parent.id)] == [low.id, high.id]


def test_merged_shards_have_one_child_with_two_parents(service: Make) -> None:
    made = service(2)
    made.merge("shardId-000000000000", "shardId-000000000001")
    low, high, child = made.catalog.list_shards().shards
    assert (low.closed, high.closed, child.closed) == (True, True, False)
    assert set(child.parents) == {low.id, high.id}
    assert [found.parents for found in made.catalog.list_shards().children_of(high.id)] == [{low.id, high.id}]


def test_a_stream_that_is_not_there_is_named() -> None:
    gone = MemoryStream("nowhere")
    gone.exists = False
    for call in (gone.describe, gone.list_shards):
        with pytest.raises(StreamNotFound, match="nowhere"):
            call()


@pytest.mark.parametrize("endpoint", ["kinesis_local_endpoint", "kinesalite_endpoint"])
def test_a_stream_that_is_not_there_is_named_over_http(request: pytest.FixtureRequest, endpoint: str) -> None:
    gone = BotoStreamCatalog(StreamAddress("nowhere", "us-east-1", request.getfixturevalue(endpoint)))
    for call in (gone.describe, gone.list_shards):
        with pytest.raises(StreamNotFound, match="nowhere"):
            call()
