"""Reading a shard: the calls, and the ranges made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_consumer.kinesis.client import ShardNotFound
from sluice_consumer.shards.probes import KinesisProber
from sluice_consumer.shards.ranges import BoundRange, Fetched, FetchRequest, Limits
from sluice_consumer.shards.reader import ReplayShort, ShardReader

Make = Callable[[int], Any]
SHARD = "shardId-000000000000"
PLENTY = Limits(10_000, 8 * 1024 * 1024)


def fetch(service: Any, position: Position = TRIM_HORIZON, shard_id: str = SHARD, limits: Limits = PLENTY) -> Fetched:
    return reader(service).fetch(FetchRequest(shard_id, position), limits)


def reader(service: Any) -> ShardReader:
    return ShardReader(service.client, service.catalog, service.catalog.describe())


def all_of(service: Any, limits: Limits = PLENTY) -> tuple[list[bytes], Fetched]:
    found: list[bytes] = []
    position = TRIM_HORIZON
    for _ in range(100):
        fetched = fetch(service, position, limits=limits)
        found += fetched.columns.data
        position = fetched.end
        if position == END:
            return found, fetched
    raise AssertionError("the shard does not end")


def test_records_come_as_they_were_put(service: Make) -> None:
    made = service(2)
    numbers = [made.put(SHARD, data) for data in (b"\x00\xff", b"", b"x" * 100_000)]
    made.put("shardId-000000000001", b"elsewhere")
    fetched = fetch(made)
    assert fetched.columns.data == [b"\x00\xff", b"", b"x" * 100_000]
    assert fetched.columns.sequence == numbers
    assert fetched.columns.partition_key == ["key"] * 3
    assert all(abs(made.now() - millis) < 60_000 for millis in fetched.columns.arrival_millis)
    assert (fetched.end, fetched.behind) == (Position.after(numbers[-1]), 0)


def test_every_kind_of_position(service: Make) -> None:
    made = service(1)
    before = made.now()
    numbers = [made.put(SHARD, data) for data in (b"a", b"b", b"c")]
    assert fetch(made, Position.after(numbers[0])).columns.data == [b"b", b"c"]
    assert fetch(made, Position.after(numbers[2])).columns.data == []
    assert fetch(made, Position.after(numbers[1], 0)).columns.data == [b"c"]
    assert fetch(made, Position.after(numbers[1], -1)).columns.data == [b"b", b"c"]
    assert fetch(made, Position.timestamp(before - 60_000)).columns.data == [b"a", b"b", b"c"]


def test_an_empty_shard_has_an_empty_range(service: Make) -> None:
    made = service(1)
    fetched = fetch(made)
    assert (fetched.records, fetched.end, fetched.behind) == (0, TRIM_HORIZON, 0)
    assert abs(made.now() - fetched.read_to) < 10_000


def test_limits_make_a_chain_of_ranges(service: Make) -> None:
    made = service(1)
    for i in range(10):
        made.put(SHARD, b"%d" % i)
    position, found = TRIM_HORIZON, []
    for _ in range(4):
        fetched = fetch(made, position, limits=Limits(3, 1000))
        again = reader(made).replay(BoundRange(SHARD, fetched.start, fetched.end, fetched.first, fetched.records))
        assert again.columns == fetched.columns
        assert fetched.records <= 3
        found += fetched.columns.data
        position = fetched.end
    assert found == [b"%d" % i for i in range(10)]


def test_a_replay_that_is_short_is_told(service: Make) -> None:
    made = service(1)
    made.put(SHARD, b"a")
    fetched = fetch(made)
    with pytest.raises(ReplayShort):
        reader(made).replay(BoundRange(SHARD, fetched.start, fetched.end, fetched.first, 2))


@pytest.mark.parametrize("records", [0, 1, 5])
def test_a_split_shard_ends_with_its_children(service: Make, records: int) -> None:
    made = service(1)
    payloads = [b"%d" % i for i in range(records)]
    for data in payloads:
        made.put(SHARD, data)
    made.split(SHARD)
    found, last = all_of(made, Limits(2, 1000))
    children = {child.id: child.parents for child in last.children or ()}
    assert found == payloads
    assert children == {"shardId-000000000001": {SHARD}, "shardId-000000000002": {SHARD}}
    again = reader(made).replay(BoundRange(SHARD, last.start, END, last.first, last.records))
    assert again.columns == last.columns


def test_merged_shards_end_with_their_child(service: Make) -> None:
    made = service(2)
    made.put(SHARD, b"a")
    made.merge(SHARD, "shardId-000000000001")
    found, last = all_of(made)
    assert found == [b"a"]
    assert [(child.id, child.parents) for child in last.children or ()] == [("shardId-000000000002", {SHARD, "shardId-000000000001"})]


def test_a_child_begins_after_its_parent(service: Make) -> None:
    made = service(1)
    made.put(SHARD, b"parent")
    made.split(SHARD)
    made.put("shardId-000000000001", b"child")
    assert fetch(made, shard_id="shardId-000000000001").columns.data == [b"child"]


def test_an_unknown_shard_is_not_found(service: Make) -> None:
    made = service(1)
    with pytest.raises(ShardNotFound):
        made.client.get_iterator("shardId-000000000099", TRIM_HORIZON)


def test_a_call_asks_for_one_to_ten_thousand_records(service: Make) -> None:
    made = service(1)
    iterator = made.client.get_iterator(SHARD, TRIM_HORIZON)
    for limit in (0, 10_001):
        with pytest.raises(Refused):
            made.client.get_records(SHARD, iterator, limit)


def test_an_iterator_may_be_used_again(service: Make) -> None:
    """A retry of a lost reply gives the same records."""
    made = service(1)
    made.put(SHARD, b"a")
    iterator = made.client.get_iterator(SHARD, TRIM_HORIZON)
    first, second = (made.client.get_records(SHARD, iterator, 10) for _ in range(2))
    assert first.records == second.records


def test_a_probe_sees_a_record_and_the_end(service: Make) -> None:
    made = service(1)
    prober = KinesisProber(made.client, SHARD, TRIM_HORIZON)
    assert prober.idle()
    number = made.put(SHARD, b"a")
    assert not prober.idle()
    prober = KinesisProber(made.client, SHARD, Position.after(number))
    assert prober.idle()
    made.split(SHARD)
    assert not (prober.idle() and prober.idle())
