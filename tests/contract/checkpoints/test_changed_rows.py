"""Rows that somebody changed by hand, with every type that DynamoDB has: a driver that begins names the row, what is wrong, and how to see it."""

from __future__ import annotations

from typing import Any

import pytest
from stored_rows import CONSUMER_ROW, ROW

from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol.encoding import to_wire
from sluice_checkpoints.protocol.row_kinds import OwnTable
from sluice_checkpoints.protocol.rows import CONSUMER
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import Put

STRANGE = {
    "a fraction": {"N": "1.5"},
    "bytes": {"B": b"x"},
    "a set of numbers": {"NS": ["1"]},
    "nothing": {"NULL": True},
    "text": {"S": "7"},
}
SHARD = [(ROW.key, name) for name in ("batch", "joins", "generation", "readTo", "start", "end", "parents", "readers", "children")]
OF_CONSUMER = [(CONSUMER, name) for name in ("committed", "generation", "counter", "leaseMillis", "bootstrapped", "letters")]
NESTED = {
    "text for a child's parents": to_wire([{"id": "shardId-000000000009", "parents": "shardId-000000000001"}]),
    "a number for a parent": {"L": [{"M": {"id": {"S": "shardId-000000000009"}, "parents": {"NS": ["1"]}}}]},
    "a child without an id": {"L": [{"M": {"parents": {"SS": ["shardId-000000000001"]}}}]},
}


@pytest.fixture(params=["boto3", "http"])
def store(request: pytest.FixtureRequest, dynamo_table: DynamoTable) -> CheckpointStore:
    for row in (CONSUMER_ROW, ROW):
        dynamo_table.write(Put(row.to_item(), ()))
    table = dynamo_table if request.param == "boto3" else DynamoTable(dynamo_table.name, request.getfixturevalue("dynamodb_http"))
    return CheckpointStore(OwnTable(table))


def change(api: Any, store: CheckpointStore, key: str, name: str, value: dict[str, Any]) -> None:
    api.update_item(
        TableName=store.table.name,
        Key={"id": {"S": key}},
        UpdateExpression="SET #name = :value",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":value": value},
    )


def refused(store: CheckpointStore, key: str) -> str:
    with pytest.raises(Refused) as error:
        store.consumer() if key == CONSUMER else store.contents()
    said = str(error.value)
    assert said.startswith(f"table {store.table.name} belongs to another program, or was changed by hand: row {key}")
    assert f'To see the row, run aws dynamodb get-item --table-name {store.table.name} --key \'{{"id": {{"S": "{key}"}}}}\'' in said
    return said


@pytest.mark.parametrize("value", STRANGE.values(), ids=list(STRANGE))
@pytest.mark.parametrize(("key", "name"), [*SHARD, *OF_CONSUMER])
def test_an_attribute_of_another_type_is_refused(store: CheckpointStore, dynamodb_api: Any, key: str, name: str, value: dict[str, Any]) -> None:
    change(dynamodb_api, store, key, name, value)
    refused(store, key)


@pytest.mark.parametrize("value", NESTED.values(), ids=list(NESTED))
def test_a_child_of_another_form_is_refused(store: CheckpointStore, dynamodb_api: Any, value: dict[str, Any]) -> None:
    """Text is no set of shards, though Python would take its letters for one."""
    change(dynamodb_api, store, ROW.key, "children", value)
    refused(store, ROW.key)
