"""`sluice reset` by its command line, against emulated Kinesis and DynamoDB: what comes again, counted by the producer's log."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner

from sluice_checkpoints.cli.main import main
from sluice_checkpoints.dynamodb.table import DynamoTable, Endpoint, client
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.positions.placement import CLOCK_SLACK_MILLIS
from sluice_checkpoints.protocol.rows import ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import NEW_ROW, Put
from sluice_consumer.shards.ranges import FetchRequest, Limits
from sluice_consumer.shards.reader import ShardReader

pytestmark = pytest.mark.slow  # the emulator takes seconds for each split and merge

REGION = "us-east-1"
ZERO, ONE, TWO, THREE, FOUR = (f"shardId-{number:012d}" for number in range(5))
PLENTY = Limits(10_000, 8 * 1024 * 1024)


@dataclass
class Produced:
    """A stream, and its producer's log.

    Attributes:
        log: what the producer put, by shard and in order: data and shard.
        marks: times in milliseconds, and how many records were put before each.
    """

    service: Any
    log: list[tuple[bytes, str]] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)

    def put(self, *shards: str) -> None:
        for shard in (*shards, *shards):
            data = b"%d" % len(self.log)
            self.service.put(shard, data)
            self.log.append((data, shard))

    def mark(self) -> None:
        """A millisecond in which nothing is put."""
        before = self.service.now()
        while (now := self.service.now()) < before + 2:
            pass
        self.marks.append((now, len(self.log)))
        while self.service.now() < now + 2:
            pass

    def read(self, rows: dict[str, ShardRow]) -> tuple[list[tuple[bytes, str]], dict[str, ShardRow]]:
        """What is delivered from these positions, a shard after its parents, as a driver would; and the rows then."""
        reader = ShardReader(self.service.client, self.service.catalog, self.service.catalog.describe())
        found, now = list[tuple[bytes, str]](), dict(rows)
        while ready := [row for row in now.values() if row.batch < 1 and all(now[parent].end == END for parent in row.parents)]:
            for row in ready:
                fetched = reader.fetch(FetchRequest(row.id, row.end), PLENTY)
                found += [(bytes(data), row.id) for data in fetched.columns.data]
                over = fetched.end == END or not fetched.records
                now[row.id] = ShardRow(
                    row.id, row.end, fetched.end, batch=int(over), parents=row.parents, read_to=fetched.read_to, records=fetched.records,
                    children=tuple(fetched.children) if fetched.children else None,
                )  # fmt: skip
        return found, now


@dataclass(frozen=True)
class Consumed:
    stream: Produced
    store: CheckpointStore
    endpoints: tuple[str, ...]

    def reset(self, to: str) -> dict[str, Any]:
        words = ["--table", self.store.table.name, "--stream", self.stream.service._name, "--region", REGION, *self.endpoints, "--id", str(uuid4())]
        result = CliRunner().invoke(main, ["reset", *words, "--to", to, "--yes", "--json"])
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def moved(self) -> dict[str, Position]:
        return {shard: row.end for shard, row in self.store.shards().items()}


@pytest.fixture(scope="module")
def stream(kinesis_local: Callable[[int], Any]) -> Produced:
    """Shard 0 was split into 2 and 3, then 3 and 1 were merged into 4; there is a time before, between and behind the two."""
    one = Produced(kinesis_local(2))
    one.put(ZERO, ONE)
    one.mark()
    one.put(ZERO, ONE)
    one.service.split(ZERO)
    one.put(ONE, TWO, THREE)
    one.mark()
    one.put(ONE, TWO, THREE)
    one.service.merge(THREE, ONE)
    one.put(TWO, FOUR)
    one.mark()
    one.put(TWO, FOUR)
    return one


@pytest.fixture(scope="module")
def read(stream: Produced) -> dict[str, ShardRow]:
    """The rows of a consumer that has read all of it, and was at the tip later than each mark: the service tells the time in seconds.

    So late, too, that no clock has a mark in its future.
    """
    listed = stream.service.catalog.list_shards().shards
    second = (stream.marks[-1][0] + CLOCK_SLACK_MILLIS) // 1000
    while stream.service.now() // 1000 <= second:
        pass
    found, rows = stream.read({s.id: ShardRow(s.id, TRIM_HORIZON, TRIM_HORIZON, parents=frozenset(s.parents)) for s in listed})
    assert sorted(found) == sorted(stream.log)
    return rows


@pytest.fixture
def consumed(stream: Produced, read: dict[str, ShardRow], kinesis_local_endpoint: str, dynamodb_endpoint: str) -> Consumed:
    dynamodb, name = client(Endpoint(REGION, dynamodb_endpoint)), f"contract-{uuid4()}"
    key = {"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
    dynamodb.create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **key)
    identity, store = stream.service.catalog.describe(), CheckpointStore(DynamoTable(name, dynamodb))
    row = ConsumerRow("c", identity.arn, identity.created_millis, 3, "t", 40, 20_000, released=True, committed=1, bootstrapped=True, plan="p")
    for item in (row.to_item(), *(each.to_item() for each in read.values())):
        assert store.table.write(Put(item, (NEW_ROW,))).applied
    return Consumed(stream, store, ("--kinesis-endpoint", kinesis_local_endpoint, "--dynamodb-endpoint", dynamodb_endpoint))


@pytest.mark.parametrize(("mark", "ended"), [(0, set()), (1, {ZERO}), (2, {ZERO, ONE, THREE})], ids=["before both", "between them", "behind both"])
def test_every_record_since_a_time_comes_again_once_parents_first(consumed: Consumed, mark: int, ended: set[str]) -> None:
    millis, before = consumed.stream.marks[mark]
    document = consumed.reset(datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds"))
    assert {shard for shard, position in consumed.moved().items() if position == END} == ended
    assert document["counts"] == {"back": 5 - len(ended), "forward": 0, "unchanged": len(ended)}
    log = consumed.stream.log[before:]
    read, _ = consumed.stream.read({shard: row if row.end == END else _unread(row) for shard, row in consumed.store.shards().items()})
    assert sorted(read) == sorted(log)
    for shard in {shard for _, shard in read}:
        assert [data for data, each in read if each == shard] == [data for data, each in log if each == shard]


def test_everything_comes_again_and_nothing_does(consumed: Consumed) -> None:
    consumed.reset("trimHorizon")
    assert consumed.moved() == dict.fromkeys((ZERO, ONE, TWO, THREE, FOUR), TRIM_HORIZON)
    consumed.reset("latest")
    assert {shard for shard, position in consumed.moved().items() if position == END} == {ZERO, ONE, THREE}
    assert {child.id for child in consumed.store.shards()[ZERO].children or ()} == {TWO, THREE}


def _unread(row: ShardRow) -> ShardRow:
    return ShardRow(row.id, row.end, row.end, parents=row.parents)
