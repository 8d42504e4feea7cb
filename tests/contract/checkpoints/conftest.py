"""One checkpoint table, three times: in memory, and in DynamoDB (Local) with boto3 and without. What holds for one has to hold for all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sluice_checkpoints.dynamodb.http import http_client
from sluice_checkpoints.dynamodb.table import DynamoTable, Endpoint, client
from sluice_checkpoints.dynamodb.target_tables import DynamoTargetTables
from sluice_checkpoints.formats.detect import WRITERS
from sluice_checkpoints.formats.writer import FormatWriter, TargetTables
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import Put, Table
from sluice_lab.fakes.migration import MemoryTargetTables
from sluice_lab.fakes.table import MemoryTable

sys.path.insert(0, str(Path(__file__).parents[2] / "checkpoints"))  # `migrating`: tests have no packages (importlib mode)
sys.path.insert(0, str(Path(__file__).parent))  # `lettered_world`

from exports import Time
from stored_rows import BOUND, CONSUMER_ROW, EPOCH, READER, ROW


@pytest.fixture(scope="session")
def dynamodb_api(dynamodb_endpoint: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "contract")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "contract")
        yield client(Endpoint("us-east-1", dynamodb_endpoint))


@pytest.fixture(scope="session")
def dynalite_api(dynalite_endpoint: str) -> Any:
    """A client of a DynamoDB whose tables take time to come."""
    return client(Endpoint("us-east-1", dynalite_endpoint))


def create(api: Any) -> str:
    """A table with the key `id`; returns its name, which was never used before."""
    name = f"contract-{uuid4()}"
    api.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


@pytest.fixture
def dynamo_table(dynamodb_api: Any) -> DynamoTable:
    return DynamoTable(create(dynamodb_api), dynamodb_api)


@pytest.fixture(scope="session")
def dynamodb_http(dynamodb_api: Any, dynamodb_endpoint: str) -> Any:
    assert dynamodb_api is not None  # its credentials are in the environment
    return http_client(Endpoint("us-east-1", dynamodb_endpoint))


@pytest.fixture(params=["memory", "boto3", "http"])
def table(request: pytest.FixtureRequest) -> Table:
    if request.param == "memory":
        return MemoryTable()
    made: DynamoTable = request.getfixturevalue("dynamo_table")
    return made if request.param == "boto3" else DynamoTable(made.name, request.getfixturevalue("dynamodb_http"))


class Repeats:
    """A table on which every write takes effect, loses its reply and is sent again: the caller sees the second answer only."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._table, name)

        def twice(argument: Any) -> Any:
            call(argument)
            return call(argument)

        return twice if name in {"write", "transact"} else call


@pytest.fixture
def repeats() -> Callable[[Table], Any]:
    return Repeats


class LosesReplies:
    """A client whose next call of an operation takes effect while its reply is lost on the way, as often as asked."""

    def __init__(self, api: Any, operation: str, error: Callable[[], Exception]) -> None:
        self._api, self._operation, self._error, self.left = api, operation, error, 1

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._api, name)

        def lossy(**request: Any) -> Any:
            reply = call(**request)
            if name == self._operation and self.left:
                self.left -= 1
                raise self._error()
            return reply

        return lossy


@pytest.fixture
def loses_replies() -> type[LosesReplies]:
    return LosesReplies


@pytest.fixture
def store(table: Table) -> CheckpointStore:
    """A consumer of generation 4 that has committed batch 7, and a shard whose last range is of that batch."""
    table.write(Put(CONSUMER_ROW.to_item(), ()))
    table.write(Put(ROW.to_item(), ()))
    return CheckpointStore(table)


@pytest.fixture
def bound(store: CheckpointStore) -> CheckpointStore:
    """The same, with batch 8 bound by attempt 11 of task 4.1.0."""
    store.bind(EPOCH, 8, BOUND, READER)
    return store


@pytest.fixture
def name() -> str:
    return f"old-{uuid4()}_checkpoints"


@pytest.fixture(params=["memory", "dynamodb"])
def tables(request: pytest.FixtureRequest) -> TargetTables:
    return MemoryTargetTables({}) if request.param == "memory" else DynamoTargetTables(request.getfixturevalue("dynamodb_api"), Time().patience())


@pytest.fixture(params=list(WRITERS))
def writer(request: pytest.FixtureRequest) -> FormatWriter:
    return WRITERS[request.param]
