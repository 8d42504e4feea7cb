"""`diagnose` as its own process, against DynamoDB Local and emulated Kinesis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from sluice_checkpoints.diagnose.oldest_records import BotoOldestRecords
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog

REGION = "us-east-1"
CONSUMER = Path(__file__).parents[3] / "consumer"
A, B = "shardId-000000000000", "shardId-000000000001"


def stream(endpoint: str) -> tuple[str, list[str]]:
    """A stream of two shards, three records in the first one; its name and their sequence numbers."""
    kinesis, name = boto3.client("kinesis", region_name=REGION, endpoint_url=endpoint), f"diagnosed-{uuid4()}"
    kinesis.create_stream(StreamName=name, ShardCount=2)
    kinesis.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    put = [kinesis.put_record(StreamName=name, Data=b"x", PartitionKey="k", ExplicitHashKey="0") for _ in range(3)]
    return name, [reply["SequenceNumber"] for reply in put]


@pytest.fixture(params=["kinesis_local_endpoint", "kinesalite_endpoint"])
def kinesis_endpoint(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def test_the_oldest_record_is_found_where_there_is_one(kinesis_endpoint: str) -> None:
    name, sequences = stream(kinesis_endpoint)
    catalog = BotoStreamCatalog(StreamAddress(name, REGION, kinesis_endpoint))
    catalog.describe()
    assert BotoOldestRecords(catalog).oldest([A, B, "shardId-000000000099"]) == {A: sequences[0]}


@pytest.fixture
def leases(dynamodb_api: Any) -> Callable[..., str]:
    def made(*rows: tuple[str, str]) -> str:
        name = f"contract-{uuid4()}"
        attribute = {"AttributeName": "leaseKey"}
        dynamodb_api.create_table(
            TableName=name,
            AttributeDefinitions=[attribute | {"AttributeType": "S"}],
            KeySchema=[attribute | {"KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        for shard, checkpoint in rows:
            item = {"leaseKey": {"S": shard}, "checkpoint": {"S": checkpoint}, "leaseCounter": {"N": "3"}, "leaseOwner": {"S": "w1"}}
            dynamodb_api.put_item(TableName=name, Item=item)
        return name

    return made


@pytest.fixture
def run(dynamodb_endpoint: str, kinesis_local_endpoint: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    def program(*arguments: str) -> subprocess.CompletedProcess[str]:
        ends = ("--region", REGION, "--dynamodb-endpoint", dynamodb_endpoint, "--kinesis-endpoint", kinesis_local_endpoint)
        command = (sys.executable, "-m", "sluice_checkpoints", "diagnose", *arguments, *ends)
        return subprocess.run(command, env=os.environ | {"PYTHONPATH": str(CONSUMER)}, check=False, capture_output=True, text=True)

    return program


def test_a_real_table_and_a_real_stream_in_order(
    run: Callable[..., Any], leases: Callable[..., str], kinesis_local_endpoint: str, dynamodb_api: Any
) -> None:
    name, sequences = stream(kinesis_local_endpoint)
    table = leases((A, sequences[1]), (B, "TRIM_HORIZON"))
    before = dynamodb_api.scan(TableName=table)["Items"]
    done = run("--table", table, "--stream", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no loss was found" in done.stdout
    assert dynamodb_api.scan(TableName=table)["Items"] == before


def test_a_real_table_with_losses(run: Callable[..., Any], leases: Callable[..., str], kinesis_local_endpoint: str) -> None:
    """A checkpoint before the oldest record, LATEST, and a row whose shard is not there: exit 1. The stream never had that shard."""
    name, sequences = stream(kinesis_local_endpoint)
    table = leases((A, str(int(sequences[0]) - 1)), (B, "LATEST"), ("shardId-000000000099", "TRIM_HORIZON"))
    done = run("--table", table, "--stream", name, "--json")
    found = {(f["kind"], f["shard"]) for f in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1
    assert found == {("behind-retention", A), ("never-acknowledged", B), ("expired", "shardId-000000000099"), ("other-stream", None)}
