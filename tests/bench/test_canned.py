"""The canned Kinesis that benchmarks measure against answers as Kinesis does, in both formats."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "bench"))

import canned
import consumer_run
from slab import CBOR, JSON, Shape, records

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_consumer.kinesis.http import connect
from sluice_consumer.kinesis.packed import PackedRecords
from sluice_consumer.shards.ranges import BoundRange, FetchRequest, Limits
from sluice_consumer.shards.reader import ShardReader
from sluice_consumer.spark.arrow import to_arrow

SHARD = "shardId-000000000001"
SHAPE = Shape(25_000, 100, 1_700_000_000_000)


@pytest.fixture(scope="module", params=[(JSON,), (CBOR,), (JSON, CBOR)], ids=["JSON", "CBOR", "both"])
def formats(request: pytest.FixtureRequest) -> tuple[str, ...]:
    spoken: tuple[str, ...] = request.param
    return spoken


@pytest.fixture(scope="module")
def endpoint(formats: tuple[str, ...]) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, consumer_run.kinesis(canned.Options(2, SHAPE, formats)) as url:
        for name, value in consumer_run.CREDENTIALS.items():
            patch.setenv(name, value)
        yield url


@pytest.fixture
def reader(endpoint: str) -> ShardReader:
    catalog = BotoStreamCatalog(StreamAddress("bench", "us-east-1", endpoint))
    return ShardReader(connect(StreamAddress("bench", "us-east-1", endpoint)), catalog, catalog.describe())


def test_every_record_comes_as_it_was_made(reader: ShardReader, formats: tuple[str, ...]) -> None:
    expected = list(records(SHAPE))
    place, found = FetchRequest(SHARD, TRIM_HORIZON), []
    for _ in range(3):
        fetched = reader.fetch(place, Limits(10_500, 2**30))
        assert all(isinstance(part.records, PackedRecords) for part in fetched.columns.parts) == (CBOR in formats)
        again = reader.replay(BoundRange(SHARD, fetched.start, fetched.end, fetched.first, fetched.records))
        assert list(to_arrow([again], "bench")) == list(to_arrow([fetched], "bench"))
        found += [(row[0], row[3], row[2], row[4]) for row in fetched.columns.rows()]
        place = FetchRequest(SHARD, fetched.end, fetched.read_to)
    assert found == expected
    assert (place.position, fetched.behind) == (Position.after(expected[-1][0]), 0)


def test_a_reply_holds_no_more_than_ten_megabytes() -> None:
    """As the service's does."""
    shape = Shape(3000, 8000, 0)
    made = canned.Canned(canned.Options(1, shape, (CBOR,)))
    _, body = made.get_records(CBOR, {"ShardIterator": canned._token(SHARD, 0)})
    assert 8 * 1024 * 1024 < sum(map(len, body)) < canned.PAGE_BYTES + 1_000_000


def test_limits_are_the_services() -> None:
    """Five calls a second and shard; the sixth is told so."""
    shape = Shape(100, 100, 0)
    made = canned.Canned(canned.Options(1, shape, (CBOR,), limits=True))
    said = [made.get_records(CBOR, {"ShardIterator": canned._token(SHARD, 0)})[0] for _ in range(6)]
    assert said == [200] * 5 + [400]


def test_records_arrive_in_time() -> None:
    paced = Shape(100, 100, 1_000_000, 20.0)
    assert [paced.arrived(now) for now in (999_000, 1_000_000, 1_000_999, 9_999_999)] == [0, 1, 20, 100]
    assert [paced.arrival_millis(i) for i in (0, 20)] == [1_000_000, 1_001_000]
    assert Shape(100, 100, 0).arrived(0) == 100
    at_random = Shape(100, 100, 1_000_000, 20.0, seed=1).of(3)
    arrivals = [at_random.arrival_millis(i) for i in range(100)]
    assert [(at_random.arrived(at), at_random.arrived(at - 1)) for at in arrivals] == [(i + 1, i) for i in range(100)]
    assert all(1_000_000 + 50 * i <= at <= 1_000_050 + 50 * i for i, at in enumerate(arrivals))
