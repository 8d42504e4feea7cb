"""Positions at the edges: inside a record, in time, of another stream; and what tells a reader that it is behind or at the end.

Where an emulator is known to do something else than Kinesis, the test says what it does.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_consumer.kinesis.client import KinesisClient
from sluice_consumer.kinesis.http import HttpKinesis
from sluice_consumer.shards.ranges import BoundRange, Fetched, FetchRequest, Limits
from sluice_consumer.shards.reader import ShardReader
from sluice_lab.fakes.stream import MemoryStream

Make = Callable[[int], Any]
SHARD, OTHER = "shardId-000000000000", "shardId-000000000001"
PLENTY = Limits(10_000, 8 * 1024 * 1024)
FOREIGN = "49540000000000000000000000000000000000000000000000000002"


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["service"])


def reader(service: Any) -> ShardReader:
    return ShardReader(service.client, service.catalog, service.catalog.describe())


def fetch(service: Any, position: Position = TRIM_HORIZON, limits: Limits = PLENTY) -> Fetched:
    return reader(service).fetch(FetchRequest(SHARD, position), limits)


def impatient(client: KinesisClient) -> KinesisClient:
    return HttpKinesis(client._address, client._wire, client._pacer, Patience(limit=0)) if isinstance(client, HttpKinesis) else client


def aggregate(*payloads: bytes) -> bytes:
    records = b"".join(b"\x1a" + bytes([len(p) + 4]) + b"\x08\x00\x1a" + bytes([len(p)]) + p for p in payloads)
    body = b"\x0a\x01k" + records
    return b"\xf3\x89\x9a\xc2" + body + hashlib.md5(body, usedforsecurity=False).digest()


def recreate(service: Any) -> None:
    if isinstance(service.catalog, MemoryStream):
        service.catalog.recreate()
        return
    former = service.catalog.describe().created_millis
    while service.catalog.describe().created_millis == former:  # kinesalite counts whole seconds
        service._api.delete_stream(StreamName=service._name)
        service._api.get_waiter("stream_not_exists").wait(StreamName=service._name, WaiterConfig={"Delay": 0.05, "MaxAttempts": 200})
        service._api.create_stream(StreamName=service._name, ShardCount=1)
        service._settle()


# -- inside a record ---------------------------------------------------------------------------------------------------------------


def test_a_position_inside_an_aggregate_goes_on_there(service: Make) -> None:
    made = service(1)
    number = made.put(SHARD, aggregate(b"a", b"b", b"c"))
    made.put(SHARD, b"plain")
    rest = fetch(made, Position.after(number, 0))
    assert (rest.columns.data, rest.columns.sub) == ([b"b", b"c", b"plain"], [1, 2, 0])
    again = reader(made).replay(BoundRange(SHARD, rest.start, rest.end, rest.first, rest.records))
    assert again.columns == rest.columns


@pytest.mark.parametrize("limits", [PLENTY, Limits(1, 1000)], ids=["all", "one"])
def test_a_former_consumers_place_is_whole_while_its_record_is_there(service: Make, limits: Limits) -> None:
    made = service(1)
    numbers = [made.put(SHARD, data) for data in (b"read", b"come to", b"next")]
    found = fetch(made, Position.after(numbers[1]), limits)
    assert (found.columns.data, found.start, found.end, found.note) == (
        [b"next"],
        Position.after(numbers[1]),
        Position.after(numbers[2]),
        None,
    )
    rest = fetch(made, found.end, limits)
    assert (rest.records, rest.end, rest.note) == (0, found.end, None)


# -- in time -----------------------------------------------------------------------------------------------------------------------


def test_a_time_takes_what_arrived_then_and_since(service: Make) -> None:
    made = service(1)
    for _ in range(5):
        made.put(SHARD, b"x")
    everything = fetch(made).columns
    since = everything.arrival_millis[3]
    expected = [number for number, at in zip(everything.sequence, everything.arrival_millis, strict=True) if at >= since]
    assert fetch(made, Position.timestamp(since)).columns.sequence == expected


def test_a_time_after_the_last_record_finds_nothing_and_does_not_go_back(service: Make, kind: str) -> None:
    made = service(1)
    made.put(SHARD, b"old")
    if kind == "kinesalite":
        pytest.skip("kinesalite never answers AT_TIMESTAMP after the last record (getShardIterator.js: the head of nothing)")
    if kind.startswith("memory"):
        made.stream.now = lambda: 1_700_000_001_123
    later = Position.timestamp(fetch(made).columns.arrival_millis[0] + 1)
    fetched = fetch(made, later)
    assert (fetched.records, fetched.end) == (0, later)


def test_a_time_in_the_services_future_is_no_reason_to_end(service: Make, kind: str) -> None:
    """Clocks differ a little: it is asked again, and this client does so 0 times. kinesis-local takes any time."""
    made = service(1)
    expected = contextlib.nullcontext() if kind == "kinesis-local" else pytest.raises(ServiceUnavailable, match="cannot be greater than")
    with expected:
        impatient(made.client).get_iterator(SHARD, Position.timestamp(made.now() + 3_600_000))


# -- of another stream -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sub", [None, 0], ids=["after", "at"])
def test_a_number_of_another_stream_is_refused(service: Make, kind: str, sub: int | None) -> None:
    """A table that belongs elsewhere is found out. kinesis-local takes any number."""
    made = service(1)
    with contextlib.nullcontext() if kind == "kinesis-local" else pytest.raises(Refused):
        made.client.get_iterator(SHARD, Position.after(FOREIGN, sub))


def test_a_catalog_tells_its_own_numbers_from_others(service: Make, kind: str) -> None:
    """A migration asks before it writes anything. kinesis-local takes any number."""
    made = service(2)
    own = [(shard, made.put(shard, data)) for shard in (SHARD, OTHER) for data in (b"a", b"b")]
    closed = made.catalog.list_shards().shards[0]
    strange = [(SHARD, FOREIGN), (OTHER, own[0][1]), (SHARD, own[-1][1])]
    made.split(SHARD)
    assert made.catalog.disowned([*own, (SHARD, closed.starting_sequence)]) == {}
    assert set(made.catalog.disowned([*own, *strange])) == (set() if kind == "kinesis-local" else set(strange))


def test_a_catalog_says_nothing_of_a_shard_that_is_gone(service: Make) -> None:
    made = service(1)
    assert made.catalog.disowned([("shardId-000000000007", made.put(SHARD, b"a"))]) == {}


def test_a_position_of_a_former_stream_is_refused_in_the_one_made_again(service: Make, kind: str) -> None:
    """Its shards have the same ids. kinesis-local may take it: there only the identity tells, which an epoch compares when it begins."""
    made = service(1)
    position, read = Position.after(made.put(SHARD, b"old")), reader(made)
    former = made.catalog.describe()
    recreate(made)
    made.put(SHARD, b"new")
    assert kind.startswith("memory") or made.catalog.describe() != former
    with contextlib.suppress(Refused) if kind == "kinesis-local" else pytest.raises(Refused):
        read.fetch(FetchRequest(SHARD, position), PLENTY)


# -- behind, and at the end --------------------------------------------------------------------------------------------------------


def test_a_range_that_was_cut_was_not_read_to_the_tip(service: Make, kind: str) -> None:
    """Nor later than its last record. kinesalite says everywhere that it is the tip."""
    made = service(1)
    for i in range(3):
        made.put(SHARD, b"%d" % i)
    cut = fetch(made, limits=Limits(2, 1000))
    assert kind == "kinesalite" or cut.read_to <= cut.columns.arrival_millis[-1]
    assert fetch(made, cut.end).columns.data == [b"2"]


def test_a_shard_that_was_read_to_its_tip_ends_when_it_closes(service: Make) -> None:
    """Nothing more comes, and the first reply need not say that this is the end."""
    made = service(1)
    made.put(SHARD, b"x")
    position = fetch(made).end
    made.split(SHARD)
    ended = fetch(made, position)
    assert (ended.end, ended.records, len(ended.children or ())) == (END, 0, 2)


def test_the_end_of_a_shard_names_its_children_or_leaves_it_to_the_listing(service: Make, kind: str) -> None:
    """A reader needs the one or the other; kinesalite leaves it."""
    made = service(1)
    made.split(SHARD)
    iterator = made.client.get_iterator(SHARD, TRIM_HORIZON)
    children = None
    while iterator is not None:
        page = made.client.get_records(SHARD, iterator, 1)
        iterator, children = page.next_iterator, page.children
    assert (children is None) == kind.endswith("kinesalite")
    assert {child.id for child in children or made.catalog.list_shards().children_of(SHARD)} == {f"shardId-{i:012d}" for i in (1, 2)}
