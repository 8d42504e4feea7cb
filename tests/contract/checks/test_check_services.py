"""What `--check` says of real emulators, of hosts that are not there, and of hosts that say nothing."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import boto3
import pytest
from conftest_checks import REGION, Checked, row_of

from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, take_over
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.rows import MigrationRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.checks.model import CheckOutcome
from sluice_consumer.config import Config, configuration
from sluice_consumer.process import pod, supervisor, wiring

OK, FAILED, NO_ANSWER = CheckOutcome.OK, CheckOutcome.FAILED, CheckOutcome.NO_ANSWER


def opened(consumer: Checked) -> tuple[Config, CheckpointStore]:
    config = configuration(consumer.path)
    return config, supervisor.open_table(config)


def test_a_consumer_without_a_table_may_start_and_nothing_is_made(consumer: Checked, tables: Callable[[], set[str]]) -> None:
    before = tables()
    results = consumer.results()
    assert {name: finding.outcome for name, finding in results.items()} == dict.fromkeys(results, OK), results
    assert results["table"].message == f"{consumer.written['checkpoints']['table']} does not exist: the driver creates it"
    assert f":stream/{consumer.written['stream']['name']}, ACTIVE, keeps records for 24 h" in results["stream"].message
    assert tables() == before


def test_a_table_that_is_in_use_is_read_and_not_written(consumer: Checked) -> None:
    config, store = opened(consumer)
    taken = take_over(store, supervisor.claim(config), Watcher())
    before = row_of(store)
    said = consumer.results()["table"].message
    assert f"generation 1, 0 batches committed, lease held by {before['holder']}" in said
    assert row_of(store) == before
    assert store.release(taken.epoch)
    assert consumer.results()["table"].message.endswith("lease free")


def test_a_stream_that_does_not_exist(consumer: Checked) -> None:
    consumer.written["stream"]["name"] = "nothing-such"
    name, outcome, said = consumer.stopped()
    assert (name, outcome) == ("stream", FAILED)
    assert said.startswith(f"stream nothing-such does not exist in {REGION}")


# -- tables ------------------------------------------------------------------------------------------------------------------------


def test_the_table_of_another_stream(consumer: Checked) -> None:
    opened(consumer)
    client = boto3.client("kinesis", endpoint_url=consumer.written["stream"]["kinesisEndpoint"], region_name=REGION)
    consumer.written["stream"]["name"] = name = f"checks-{uuid4()}"
    client.create_stream(StreamName=name, ShardCount=1)
    client.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    assert "give this consumer a table of its own" in consumer.stopped()[2]


def test_the_table_of_another_program(consumer: Checked) -> None:
    client = boto3.client("dynamodb", endpoint_url=consumer.written["stream"]["dynamodbEndpoint"], region_name=REGION)
    key = {"AttributeName": "leaseKey"}
    client.create_table(
        TableName=consumer.written["checkpoints"]["table"],
        AttributeDefinitions=[key | {"AttributeType": "S"}],
        KeySchema=[key | {"KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    name, outcome, said = consumer.stopped()
    assert (name, outcome) == ("table", FAILED)
    assert said.endswith("has the key schema (leaseKey HASH S), not (id HASH S): it is another program's table. Name another one")


def test_a_table_that_a_driver_has_worked_on_and_that_is_gone(consumer: Checked) -> None:
    """A new one would begin at start.position."""
    consumer.environment[pod.TABLE_MADE] = "true"
    assert "Restore it from a backup" in consumer.stopped()[2]


@pytest.mark.parametrize("there", [False, True])
def test_a_migration_that_was_not_made(consumer: Checked, there: bool) -> None:  # noqa: FBT001
    if there:
        opened(consumer)
    consumer.written["migrateFrom"] = {"table": "orders-kcl"}
    name, outcome, said = consumer.stopped()
    assert (name, outcome) == ("table", FAILED)
    assert said.startswith("migrateFrom.table: ")
    assert "sluice migrate --source orders-kcl --target " in said
    assert said.endswith(f" --stream {consumer.written['stream']['name']} --region us-east-1")


def test_the_target_of_a_migration_that_is_not_complete(consumer: Checked) -> None:
    config = configuration(consumer.path)
    wiring.targets(config).ensure(config.checkpoints.table)
    assert wiring.store(config).put_new(MigrationRow("old", "kcl", 1).to_item())
    assert consumer.stopped()[2].endswith("is the target of a migration that is not complete")


def test_a_copy_of_a_table(consumer: Checked) -> None:
    _, original = opened(consumer)
    row = original.consumer()
    assert row is not None
    consumer.written["checkpoints"]["table"] = f"checks-{uuid4()}"
    config = configuration(consumer.path)
    wiring.targets(config).ensure(config.checkpoints.table)
    assert wiring.store(config).create_consumer(replace(row, table_id="arn:another@1"))
    assert "is a copy of arn:another@1" in consumer.stopped()[2]


def test_a_table_of_another_owner(consumer: Checked) -> None:
    """A person tries on a laptop whether a cluster's consumer could start; then the driver of another resource starts, and one of the owner."""
    _, store = opened(consumer)
    assert take_over(store, LeaseRequest(5000, "pod-1", "now", owner=Owner("shop/orders", ("c1",))), Watcher())
    assert consumer.stopped()[2].endswith("run as it: SLUICE_OWNER=shop/orders SLUICE_CLUSTER=c1")
    consumer.environment |= {pod.OWNER: "test/orders", pod.CLUSTER: "c1"}
    name, outcome, said = consumer.stopped()
    assert (name, outcome) == ("table", FAILED)
    assert "belongs to shop/orders (cluster c1), and this driver to test/orders (cluster c1)" in said
    consumer.environment |= {pod.OWNER: "shop/orders"}
    assert consumer.results()["table"].outcome is OK


def test_an_exported_table(consumer: Checked) -> None:
    config, store = opened(consumer)
    row = store.consumer()
    assert row is not None
    consumer.written["checkpoints"]["table"] = f"checks-{uuid4()}"
    config = configuration(consumer.path)
    wiring.targets(config).ensure(config.checkpoints.table)
    assert wiring.store(config).create_consumer(replace(row, state="EXPORTED", table_id=None))
    assert "is EXPORTED: no driver starts on it again" in consumer.stopped()[2]


# -- hosts -------------------------------------------------------------------------------------------------------------------------


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def mute() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(("check", "setting"), [("stream", "kinesisEndpoint"), ("table", "dynamodbEndpoint")])
def test_a_host_at_which_nobody_listens(consumer: Checked, check: str, setting: str) -> None:
    consumer.written["stream"][setting] = nobody = closed_port()
    said = f"no answer from {nobody}/: [Errno 111] Connection refused; check stream.{setting}"
    assert consumer.stopped() == (check, NO_ANSWER, said)


@pytest.mark.parametrize(("check", "setting"), [("stream", "kinesisEndpoint"), ("table", "dynamodbEndpoint")])
def test_a_host_that_never_answers_is_named_with_its_setting(consumer: Checked, mute: str, check: str, setting: str) -> None:
    consumer.written["stream"][setting] = mute
    name, outcome, said = consumer.stopped(seconds=2.0)
    assert (name, outcome) == (check, NO_ANSWER)
    assert f"check stream.{setting}" in said


def test_a_host_that_is_something_else(consumer: Checked) -> None:
    consumer.written["stream"]["kinesisEndpoint"] = consumer.written["stream"]["dynamodbEndpoint"]
    name, outcome, said = consumer.stopped()
    assert (name, outcome) == ("stream", FAILED)
    assert "DescribeStreamSummary" in said


def test_an_endpoint_of_aws_s_own_variables_without_a_scheme(consumer: Checked) -> None:
    """Botocore reads them where the configuration names no endpoint."""
    consumer.written["stream"].pop("kinesisEndpoint")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", "localhost:4566")
        name, outcome, said = consumer.stopped()
    assert (name, outcome) == ("stream", FAILED)
    assert said == "AWS's own settings: Invalid endpoint: localhost:4566; is AWS_ENDPOINT_URL, or its like in a profile, without http:// or https://?"


# -- credentials -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("aws")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))


@pytest.mark.parametrize(
    ("variables", "outcome", "said"),
    [
        ({}, FAILED, "no AWS credentials were found. On your machine, run `aws configure`"),
        ({"AWS_PROFILE": "nothing-such"}, FAILED, "AWS credentials: The config profile (nothing-such) could not be found; correct the profile"),
        ({"AWS_ACCESS_KEY_ID": "a"}, FAILED, "AWS credentials: Partial credentials found in env"),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b\n"}, FAILED, "AWS credentials: there is a blank or a line break"),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/"}, NO_ANSWER, "the AWS credentials could not be renewed: "),
    ],
    ids=["none", "a profile that is not there", "half of them", "a line break", "a provider that does not answer"],
)
def test_credentials_that_cannot_be_right(
    consumer: Checked, nobody: None, variables: dict[str, str], outcome: CheckOutcome, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nobody is None
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    name, found, words = consumer.stopped()
    assert (name, found) == ("credentials", outcome), words
    assert words.startswith(said)
