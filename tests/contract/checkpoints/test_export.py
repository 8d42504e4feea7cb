from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from click.testing import CliRunner

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.cli.main import main
from sluice_checkpoints.dynamodb.create import DynamoTargets
from sluice_checkpoints.dynamodb.source_tables import DynamoSources
from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.dynamodb.target_tables import DynamoTargetTables
from sluice_checkpoints.errors import Refused, ServiceUnavailable, SourceActive
from sluice_checkpoints.export.exporter import Exporter
from sluice_checkpoints.export.ports import ExportPorts, ExportRequest
from sluice_checkpoints.formats.changes import RowChange, TargetTables, write_rows
from sluice_checkpoints.formats.snapshot import RawItem
from sluice_checkpoints.formats.writer import FormatWriter, RowContent
from sluice_checkpoints.formats.writers import WRITERS
from sluice_checkpoints.memory.stream import MemoryStream
from sluice_checkpoints.memory.target_tables import MemoryTargetTables
from sluice_checkpoints.migrate.migrator import Migrator
from sluice_checkpoints.migrate.ports import MigrationPorts as MigrationWorld
from sluice_checkpoints.migrate.ports import MigrationRequest as Migration
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, take_over
from sluice_checkpoints.protocol.rows import Child
from sluice_checkpoints.protocol.store import CheckpointStore, Range, TaskAttempt

# One value of each type that any of the formats has, and another one.
VALUES: dict[str, tuple[Any, Any]] = {
    "S": ("a", "b"),
    "N": ("7", "8"),
    "SS": (["x", "y"], ["x"]),
    "B": (b"\x01", b"\x02"),
    "NULL": (True, None),
}


class Time:
    """Virtual seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def patience(self) -> Patience:
        """That waits in virtual time."""
        return Patience(limit=30, clock=self.clock, sleep=self.sleep, dice=lambda: 1.0)

    def clock(self) -> float:
        """The time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Passes."""
        self.now += seconds


@pytest.fixture
def name() -> str:
    """A name never used before."""
    return f"old-{uuid4()}_checkpoints"


@pytest.fixture(params=["memory", "dynamodb"])
def tables(request: pytest.FixtureRequest) -> TargetTables:
    """No tables yet."""
    return MemoryTargetTables({}) if request.param == "memory" else DynamoTargetTables(request.getfixturevalue("dynamodb_api"), Time().patience())


@pytest.fixture(params=list(WRITERS))
def writer(request: pytest.FixtureRequest) -> FormatWriter:
    """Each format."""
    return WRITERS[request.param]


def item(writer: FormatWriter, key: str = "a", which: int = 0) -> RawItem:
    """A row with every attribute of the format."""
    keys = {k.name for k in writer.keys}
    row = {n: {tag: VALUES[tag][which]} for n, tags in writer.types.items() for tag in tags.split()[:1] if n not in keys}
    return row | {n: {"S": key} for n in keys}


def change(writer: FormatWriter, before: RawItem | None, after: RawItem) -> RowChange:
    """A change of a row of the format."""
    return RowChange(writer.keys, before, after, frozenset(writer.types))


def standing(tables: TargetTables, writer: FormatWriter, name: str, *rows: RawItem) -> None:
    """A table with these rows."""
    tables.create(name, writer.keys)
    for row in rows:
        assert tables.write(name, [change(writer, None, row)]) == {}


def only(tables: TargetTables, name: str) -> RawItem:
    """The one row of a table."""
    (row,) = tables.scan(name)
    return {n: {tag: sorted(v) if tag == "SS" else v for tag, v in tagged.items()} for n, tagged in row.items()}


# -- the conditions ----------------------------------------------------------------------------------------------------------------


def test_a_row_as_it_was_read_becomes_the_row_as_it_is_wanted(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    """Changed attributes are set, those that are not wanted are taken out, and what the format does not know stays."""
    before = item(writer)
    standing(tables, writer, name, {**before, "unknown": {"S": "x"}})
    keys = {k.name for k in writer.keys}
    left = [n for n in sorted(before.keys() - keys)[::2] if "NULL" not in before[n]]
    after = {n: item(writer, which=1 if n in left else 0)[n] for n in [*keys, *left]}
    assert tables.write(name, [change(writer, before, after)]) == {}
    assert only(tables, name) == after | {"unknown": {"S": "x"}}


def test_every_known_attribute_is_part_of_the_condition(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    """Whichever of them another program changes, takes out or adds: nothing is written, and the row as it stands is the answer."""
    keys = {k.name for k in writer.keys}
    before = item(writer)
    standing(tables, writer, name, before)
    for attribute in sorted(writer.types.keys() - keys):
        absent = {n: tagged for n, tagged in before.items() if n != attribute}
        for read in (absent, {**before, attribute: item(writer, which=1)[attribute]}):
            assert list(tables.write(name, [change(writer, read, item(writer, which=1))])) == [0], attribute
    refused = tables.write(name, [change(writer, item(writer, which=1), before)])
    assert {n: {t: sorted(v) if t == "SS" else v for t, v in tagged.items()} for n, tagged in (refused[0] or {}).items()} == before
    assert only(tables, name) == before


def test_a_new_row_is_refused_where_there_is_one(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    """Somebody was faster: it is not overwritten."""
    standing(tables, writer, name, item(writer))
    assert list(tables.write(name, [change(writer, None, item(writer, which=1))])) == [0]
    assert only(tables, name) == item(writer)


def test_a_row_that_was_deleted_is_not_made_again(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    """Its system had a reason."""
    tables.create(name, writer.keys)
    assert tables.write(name, [change(writer, item(writer), item(writer, which=1))]) == {0: None}
    bare = {k.name: {"S": "a"} for k in writer.keys}
    assert tables.write(name, [change(writer, bare, item(writer, which=1))]) == {0: None}
    assert list(tables.scan(name)) == []


def test_null_is_a_value(tables: TargetTables, name: str) -> None:
    """Kinsumer writes NULL where it has nothing to say: it is neither absence nor a text."""
    writer = WRITERS["kinsumer"]
    row: dict[str, Any] = {"Shard": {"S": "a"}, "SequenceNumber": {"NULL": True}}
    standing(tables, writer, name, row)
    after = row | {"SequenceNumber": {"S": "1"}}
    assert list(tables.write(name, [change(writer, {"Shard": {"S": "a"}}, after)])) == [0]
    assert tables.write(name, [change(writer, row, after)]) == {}


def test_one_refusal_stops_the_whole_transaction(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    """And only the refused are named."""
    standing(tables, writer, name, item(writer))
    changes = [change(writer, None, item(writer, key)) for key in ("b", "a", "c")]
    assert list(tables.write(name, changes)) == [1]
    assert only(tables, name) == item(writer)


def test_a_row_that_moved_ends_the_export_and_one_that_is_as_wanted_does_not(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    """`write_rows` tells a lost reply from a worker."""
    standing(tables, writer, name, item(writer))
    done = [change(writer, None, item(writer)), change(writer, None, item(writer, "b"))]
    write_rows(tables, name, done)
    write_rows(tables, name, done)
    assert len(list(tables.scan(name))) == 2
    third = {n: tagged for n, tagged in item(writer).items() if n in {k.name for k in writer.keys}}
    with pytest.raises(SourceActive, match="a moved after it was read"):
        write_rows(tables, name, [change(writer, third, item(writer, which=1)), change(writer, None, item(writer, "c"))])
    assert len(list(tables.scan(name))) == 2


def test_a_hundred_rows_fit_into_one_transaction(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    """With every attribute compared: the expressions are within DynamoDB's limits."""
    tables.create(name, writer.keys)
    rows = [item(writer, f"k{i:03d}") for i in range(100)]
    assert tables.write(name, [change(writer, None, row) for row in rows]) == {}
    after = [item(writer, f"k{i:03d}", which=1) for i in range(100)]
    wanted = [{n: tagged for n, tagged in row.items() if "NULL" not in tagged} for row in after]
    assert tables.write(name, [change(writer, b, a) for b, a in zip(rows, wanted, strict=True)]) == {}
    assert len(list(tables.scan(name))) == 100


# -- the service -------------------------------------------------------------------------------------------------------------------


def test_a_table_is_made_with_the_formats_key_on_demand_and_protected(dynamodb_api: Any, writer: FormatWriter, name: str) -> None:
    """And one that is there is left as it is."""
    tables = DynamoTargetTables(dynamodb_api, Time().patience())
    assert tables.key_schema(name) is None
    tables.create(name, writer.keys)
    said = dynamodb_api.describe_table(TableName=name)["Table"]
    assert said["DeletionProtectionEnabled"]
    assert said["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert tables.key_schema(name) == writer.keys
    tables.create(name, writer.keys)


def test_a_table_of_another_key_is_refused(tables: TargetTables, name: str) -> None:
    """It is another system's."""
    tables.create(name, WRITERS["kcl"].keys)
    with pytest.raises(Refused, match="key"):
        tables.create(name, WRITERS["nifi"].keys)


def test_a_lost_reply_is_asked_for_again(dynamodb_api: Any, loses_replies: Any, writer: FormatWriter, name: str) -> None:
    """By one token: the transaction is not refused for what it did itself."""
    api = loses_replies(dynamodb_api, "transact_write_items", lambda: ReadTimeoutError(endpoint_url="x"))
    tables = DynamoTargetTables(api, Time().patience())
    tables.create(name, writer.keys)
    assert tables.write(name, [change(writer, None, item(writer))]) == {}
    assert api.left == 0


class Answers:
    """A client one operation of which always answers with an error."""

    def __init__(self, api: Any, operation: str, code: str) -> None:
        self._api, self._operation, self._code = api, operation, code

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def fail(**_request: Any) -> Any:
            said = {"Error": {"Code": self._code, "Message": "said the service"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
            raise ClientError(said, operation)

        return fail if operation == self._operation else getattr(self._api, operation)


@pytest.mark.parametrize(("code", "error"), [("AccessDeniedException", Refused), ("ThrottlingException", ServiceUnavailable)])
def test_no_answer_and_no_access_are_told_apart(dynamodb_api: Any, writer: FormatWriter, name: str, code: str, error: type[Exception]) -> None:
    """The one is tried for a while, the other is for the user."""
    DynamoTargetTables(dynamodb_api, Time().patience()).create(name, writer.keys)
    tables = DynamoTargetTables(Answers(dynamodb_api, "transact_write_items", code), Time().patience())
    with pytest.raises(error):
        tables.write(name, [change(writer, None, item(writer))])


# -- there and back ----------------------------------------------------------------------------------------------------------------

ZERO, ONE, TWO, THREE = (f"shardId-{i:012d}" for i in range(4))


class Land:
    """A stream in memory, and everything else in DynamoDB: shard 0 was split into 2 and 3, shard 1 is open."""

    def __init__(self, api: Any, writer: FormatWriter, old: str) -> None:
        self.api, self.writer, self.old, self.time = api, writer, old, Time()
        self.stream = MemoryStream("orders", shards=2, now=lambda: 1_700_000_000_000 + round(self.time.now * 1000))
        self.zeroth, self.first, self.second = (self.stream.put_in(i, b"x") for i in (ZERO, ONE, ONE))
        self.stream.split(ZERO)
        self.foreign = DynamoTargetTables(api, self.time.patience())
        self.foreign.create(old, writer.keys)
        self.stopped(ONE, Position.after(self.first))

    def stopped(self, shard: str, position: Position) -> None:
        """The other system's row, with an owner's name where the format has one."""
        place = RowContent(self.stream.shards[shard].shard, (), position, "orders", 1_699_999_999_000)
        made = self.writer.change(place, None)
        assert made
        write_rows(self.foreign, self.old, [made])

    def migrate(self, target: str) -> CheckpointStore:
        """Takes over into a new table; returns that."""
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
        """In virtual time."""
        return Watcher(self.time.clock, self.time.sleep)

    def export(self, store: CheckpointStore) -> Any:
        """Gives it back."""
        world = ExportPorts(store, self.stream, self.foreign, self.time.clock, self.time.sleep)
        return Exporter(ExportRequest(self.writer.name, self.old), world).run()

    def stands(self, store: CheckpointStore) -> dict[str, Position]:
        """Where every shard stands; NiFi's last sequence number of shard 0 means its end."""
        last = Position.after(str(self.stream.shards[ZERO].shard.ending_sequence))
        consumer = store.consumer()
        found = {i: row.committed_position(consumer.committed if consumer else 0) for i, row in store.shards().items()}
        return {i: END if position == last else position for i, position in found.items()}


@pytest.fixture
def land(dynamodb_api: Any, writer: FormatWriter, name: str) -> Land:
    """One for each format."""
    return Land(dynamodb_api, writer, name)


def test_there_and_back_and_there_again_in_dynamodb(land: Land) -> None:
    """Every shard stands where it stood, and the first table is closed."""
    first = land.migrate(f"first-{uuid4()}")
    land.consume(first)
    before = land.stands(first)
    assert before == {ZERO: END, ONE: Position.after(land.second), TWO: TRIM_HORIZON, THREE: TRIM_HORIZON}
    result = land.export(first)
    assert result.state == "EXPORTED"
    with pytest.raises(Refused, match="EXPORTED"):
        take_over(first, LeaseRequest(20_000, "driver", "now"), land.watcher())
    assert land.stands(land.migrate(f"second-{uuid4()}")) == before


def test_a_worker_that_moves_its_row_in_dynamodb_is_not_lowered(land: Land) -> None:
    """Its write comes between the reading and the writing of the export: that ends with 75, and its row stays."""
    first = land.migrate(f"first-{uuid4()}")
    land.consume(first)
    place = next(n for n, tagged in only_of(land, ONE).items() if tagged == {"S": land.first})

    class Late(DynamoTargetTables):
        def write(self, table: str, changes: Any) -> Any:
            key = {k.name: only_of(land, ONE)[k.name] for k in land.writer.keys}
            land.api.update_item(
                TableName=table,
                Key=key,
                UpdateExpression="SET #p = :p",
                ExpressionAttributeNames={"#p": place},
                ExpressionAttributeValues={":p": {"S": further}},
            )
            return super().write(table, changes)

    further = land.stream.put_in(ONE, b"later")
    land.foreign = Late(land.api, land.time.patience())
    with pytest.raises(SourceActive, match=ONE):
        land.export(first)
    assert only_of(land, ONE)[place] == {"S": further}
    assert len(land.foreign.scan(land.old)) == 1
    row = first.consumer()
    assert row is not None
    assert (row.state, row.released) == ("ACTIVE", True)


def only_of(land: Land, shard: str) -> RawItem:
    """The other table's row of a shard."""
    return next(row for row in land.foreign.scan(land.old) if row[land.writer.keys[-1].name] == {"S": shard})


def test_the_table_that_is_made_can_be_migrated_again(dynamodb_api: Any, writer: FormatWriter, name: str) -> None:
    """There was none: it is made, filled, and a migration finds every place in it."""
    land = Land(dynamodb_api, writer, name)
    first = land.migrate(f"first-{uuid4()}")
    land.consume(first)
    before = land.stands(first)
    land.old = f"made-{uuid4()}_checkpoints"
    land.export(first)
    assert land.stands(land.migrate(f"second-{uuid4()}")) == before


def test_the_command_line_goes_there_and_back(dynamodb_api: Any, dynamodb_endpoint: str, kinesis_local_endpoint: str, name: str) -> None:
    """Over an emulated DynamoDB and an emulated Kinesis: a lease is taken over, given back to nobody in particular, and Sluice's table is closed."""
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
