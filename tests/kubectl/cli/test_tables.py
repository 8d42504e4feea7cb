"""`shards --table` before an emulated DynamoDB (moto, over HTTP)."""

from __future__ import annotations

import json

import boto3
from scene import Scene

from sluice_checkpoints.dynamodb.table import DynamoTable, Endpoint, client
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.protocol.rows import ConsumerRow, ShardRow
from sluice_checkpoints.protocol.table import Put

TABLE, REGION = "sluice_default_orders", "eu-west-1"
ARN = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders"


def table(endpoint: str) -> None:
    boto3.client("dynamodb", region_name=REGION, endpoint_url=endpoint).create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    rows = DynamoTable(TABLE, client(Endpoint(REGION, endpoint)))
    begin, end = Position.after("49590338271490256608559692538361571095921575989136588898"), END
    for row in (
        ConsumerRow("id-1", ARN, 1, generation=3, holder="orders-driver-3"),
        ShardRow("shardId-000000000000", end, end, children=()),
        ShardRow("shardId-000000000001", begin, begin, parents=frozenset({"shardId-000000000000"})),
    ):
        rows.write(Put(row.to_item(), ()))


def test_positions_and_holder_are_those_of_the_table(orders: Scene, endpoint: str) -> None:
    table(endpoint)
    answer = orders.run("shards", "orders", "--table", "--dynamodb-endpoint", endpoint, "-o", "json")
    assert answer.exit_code == 0, answer.told
    found = {one["id"]: one for one in json.loads(answer.said)["shards"]}
    assert {name: one["position"] for name, one in found.items()} == {
        "shardId-000000000000": {"at": "END"},
        "shardId-000000000001": {"at": "AFTER", "sequence": "49590338271490256608559692538361571095921575989136588898"},
    }
    assert {one["holder"] for one in found.values()} == {"orders-driver-3"}
    assert found["shardId-000000000001"]["parents"] == ["shardId-000000000000"]
    shown = orders.run("shards", "orders", "--table", "--dynamodb-endpoint", endpoint).said
    assert "AFTER 49590338…9136588898" in shown
    assert "orders-driver-3" in shown


def test_a_table_that_is_not_there_is_named(orders: Scene, endpoint: str) -> None:
    answer = orders.run("shards", "orders", "--table", "--dynamodb-endpoint", endpoint)
    assert answer.exit_code == 65
    assert (
        "checkpoint table sluice_default_orders in eu-west-1: there is no table sluice_default_orders; check its name and the region; next: "
        in answer.told
    )
