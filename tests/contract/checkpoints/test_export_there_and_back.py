"""Positions go to another system's table and come back, in real DynamoDB (Local)."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import boto3
import pytest
from click.testing import CliRunner
from exports import Time, only, standing

from sluice_checkpoints.cli.main import main
from sluice_checkpoints.dynamodb.create import DynamoTargets
from sluice_checkpoints.dynamodb.source_tables import DynamoSources
from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.dynamodb.target_tables import DynamoTargetTables
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.export.exporter import Exporter
from sluice_checkpoints.export.ports import ExportPorts, ExportRequest
from sluice_checkpoints.formats.detect import WRITERS
from sluice_checkpoints.formats.writer import FormatWriter, RowContent, write_rows
from sluice_checkpoints.migrate.migrator import Migrator
from sluice_checkpoints.migrate.ports import MigrationPorts as MigrationWorld
from sluice_checkpoints.migrate.ports import MigrationRequest as Migration
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, take_over
from sluice_checkpoints.protocol.rows import Child
from sluice_checkpoints.protocol.store import CheckpointStore, Range, TaskAttempt
from sluice_lab.fakes.stream import MemoryStream

# -- there and back ----------------------------------------------------------------------------------------------------------------


ZERO, ONE, TWO, THREE = (f"shardId-{i:012d}" for i in range(4))


class Land:
    """A stream in memory, and everything else in DynamoDB: shard 0 was split into 2 and 3, shard 1 is open."""

    def __init__(self, api: Any, writer: FormatWriter, old: str) -> None:
        self.api, self.writer, self.old, self.time = api, writer, old, Time()
        self.stream = MemoryStream("orders", shards=2, now=lambda: 1_700_000_000_000 + round(self.time.now * 1000))
        self.zeroth, self.first, self.second = (self.stream.put_in(i, b"x") for i in (ZERO, ONE, ONE))
        self.stream.split(ZERO)
        self.targets = DynamoTargetTables(api, self.time.patience())
        self.targets.create(old, writer.keys)
        self.stopped(ONE, Position.after(self.first))

    def stopped(self, shard: str, position: Position) -> None:
        place = RowContent(self.stream.shards[shard].shard, (), position, "orders", 1_699_999_999_000)
        made = self.writer.change(place, None)
        assert made
        write_rows(self.targets, self.old, [made])

    def migrate(self, target: str) -> CheckpointStore:
        targets = DynamoTargets(self.api, self.time.patience())
        world = MigrationWorld(DynamoSources(self.api), self.stream, targets, self.time.clock, self.time.sleep)
        Migrator(Migration(self.old, target, unstarted="trim-horizon"), world).run()
        return CheckpointStore(DynamoTable(target, self.api))

    def consume(self, store: CheckpointStore) -> None:
        """One batch: 0 to its end, 1 to its second record."""
        epoch = take_over(store, LeaseRequest(20_000, "driver", "now"), self.watcher()).epoch
        children = tuple(Child(i, frozenset({ZERO})) for i in (TWO, THREE))
        ends = {ZERO: (END, children), ONE: (Position.after(self.second), None)}
        for shard, row in store.shards().items():
            store.fence(epoch, shard)
            if shard in ends:
                end, known = ends[shard]
                store.bind(epoch, 1, Range(shard, row.end, end, records=1, children=known), TaskAttempt("1.0.0", 1))
        store.commit(epoch, 1)
        store.release(epoch)

    def watcher(self) -> Watcher:
        return Watcher(self.time.clock, self.time.sleep)

    def export(self, store: CheckpointStore) -> Any:
        world = ExportPorts(store, self.stream, self.targets, self.time.clock, self.time.sleep)
        return Exporter(ExportRequest(self.writer.name, self.old), world).run()

    def stands(self, store: CheckpointStore) -> dict[str, Position]:
        """Where every shard stands; NiFi's last sequence number of shard 0 means its end."""
        last = Position.after(str(self.stream.shards[ZERO].shard.ending_sequence))
        consumer = store.consumer()
        found = {i: row.committed_position(consumer.committed if consumer else 0) for i, row in store.shards().items()}
        return {i: END if position == last else position for i, position in found.items()}


@pytest.fixture
def land(dynamodb_api: Any, writer: FormatWriter, name: str) -> Land:
    return Land(dynamodb_api, writer, name)


def test_there_and_back_and_there_again_in_dynamodb(land: Land) -> None:
    first = land.migrate(f"first-{uuid4()}")
    land.consume(first)
    before = land.stands(first)
    assert before == {ZERO: END, ONE: Position.after(land.second), TWO: TRIM_HORIZON, THREE: TRIM_HORIZON}
    result = land.export(first)
    assert result.state == "EXPORTED"
    with pytest.raises(Refused, match="EXPORTED"):
        take_over(first, LeaseRequest(20_000, "driver", "now"), land.watcher())
    assert land.stands(land.migrate(f"second-{uuid4()}")) == before


def test_the_command_line_goes_there_and_back(dynamodb_api: Any, dynamodb_endpoint: str, kinesis_local_endpoint: str, name: str) -> None:
    stream, target = f"orders-{uuid4()}", f"sluice-{uuid4()}"
    kinesis = boto3.client("kinesis", region_name="us-east-1", endpoint_url=kinesis_local_endpoint)
    kinesis.create_stream(StreamName=stream, ShardCount=1)
    kinesis.get_waiter("stream_exists").wait(StreamName=stream, WaiterConfig={"Delay": 1})
    sequence = kinesis.put_record(StreamName=stream, PartitionKey="k", Data=b"x")["SequenceNumber"]
    numbers = {"leaseCounter": {"N": "7"}, "ownerSwitchesSinceCheckpoint": {"N": "0"}, "checkpointSubSequenceNumber": {"N": "3"}}
    lease = {"leaseKey": {"S": ZERO}, "checkpoint": {"S": sequence}, "leaseOwner": {"S": "w"}, **numbers}
    standing(DynamoTargetTables(dynamodb_api), WRITERS["kcl"], name, lease)

    def call(*arguments: str) -> Any:
        places = ["--region", "us-east-1", "--dynamodb-endpoint", dynamodb_endpoint, "--kinesis-endpoint", kinesis_local_endpoint]
        result = CliRunner().invoke(main, [*arguments, "--stream", stream, *places, "--quiet-seconds", "0", "--json"])
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    call("migrate", "--source", name, "--target", target)
    assert call("export", "--format", "kcl", "--table", target, "--to", name)["counts"]["written"] == 1
    row = only(DynamoTargetTables(dynamodb_api), name)
    assert (row["checkpoint"], row["checkpointSubSequenceNumber"], row["leaseCounter"]) == ({"S": sequence}, {"N": "3"}, {"N": "8"})
    assert "leaseOwner" not in row
    closed = CheckpointStore(DynamoTable(target, dynamodb_api)).consumer()
    assert closed is not None
    assert (closed.state, closed.exported_to) == ("EXPORTED", name)
