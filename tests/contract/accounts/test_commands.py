"""Commands on a stream of another account: Kinesis as the role, tables as ourselves."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from click.testing import CliRunner, Result
from conftest_accounts import EXTERNAL_ID, REGION, Theirs

from sluice_checkpoints.cli.main import main
from sluice_lab.aws.accounts import READ, Accounts
from sluice_lab.scenario import kcl_table
from sluice_lab.scenario.topology import StreamShard


@pytest.fixture
def source(theirs: Theirs) -> str:
    dynamodb = boto3.session.Session().client("dynamodb", endpoint_url=theirs.endpoint, region_name=REGION)
    listed = theirs.producer.list_shards(StreamName=theirs.name)["Shards"]
    hashes = {shard["ShardId"]: shard["HashKeyRange"] for shard in listed}
    shards = {name: StreamShard(name, int(each["StartingHashKey"]), int(each["EndingHashKey"])) for name, each in hashes.items()}
    name = f"kcl-{theirs.name}"
    kcl_table.write(dynamodb, name, kcl_table.dump()["description"], kcl_table.unread(shards))
    theirs.accounts.calls.clear()
    return name


def call(theirs: Theirs, *words: str, external_id: str = EXTERNAL_ID) -> Result:
    where = ("--stream", theirs.arn, "--region", REGION, "--kinesis-endpoint", theirs.endpoint, "--dynamodb-endpoint", theirs.endpoint)
    role = ("--role-arn", theirs.role.arn, "--external-id", external_id, "--json")
    return CliRunner().invoke(main, [*words, *where, *role])


def test_a_table_is_diagnosed_migrated_moved_and_exported_as_ourselves_and_its_stream_is_read_as_the_role(theirs: Theirs, source: str) -> None:
    """The identity in the table is the ARN, so a consumer continues from it."""
    target = f"sluice_{theirs.name}"
    diagnosed = call(theirs, "diagnose", "--table", source)
    assert diagnosed.exit_code == 0, diagnosed.output
    migrated = call(theirs, "migrate", "--source", source, "--target", target, "--quiet-seconds", "0")
    assert json.loads(migrated.stdout)["state"] == "COMPLETE", migrated.output
    row = (
        boto3.session.Session()
        .client("dynamodb", endpoint_url=theirs.endpoint, region_name=REGION)
        .get_item(TableName=target, Key={"id": {"S": "consumer"}})
    )
    assert row["Item"]["streamArn"] == {"S": theirs.arn}
    moved = call(theirs, "reset", "--table", target, "--to", "2026-01-01T00:00:00Z", "--accept-expired", "--yes")
    assert json.loads(moved.stdout)["state"] == "RESET", moved.output
    exported = call(theirs, "export", "--format", "kcl", "--table", target, "--to", source, "--quiet-seconds", "0")
    assert json.loads(exported.stdout)["state"] == "EXPORTED", exported.output
    theirs.check()


@pytest.mark.parametrize("command", ["migrate", "diagnose"])
def test_a_command_that_the_role_does_not_trust_says_which_statement_is_missing(theirs: Theirs, source: str, command: str) -> None:
    own = ("--source", source, "--target", f"sluice_{theirs.name}") if command == "migrate" else ("--table", source)
    done = call(theirs, command, *own, external_id="another")
    said = json.loads(done.stdout)
    assert (done.exit_code, said["reason"]) == (65, "AccessDenied")
    assert '"sts:ExternalId": "another"' in said["message"]
    tables = boto3.session.Session().client("dynamodb", endpoint_url=theirs.endpoint, region_name=REGION).list_tables()["TableNames"]
    assert f"sluice_{theirs.name}" not in tables


def test_a_diagnosis_with_a_role_that_may_not_read_names_the_way_without_it(theirs: Theirs, source: str) -> None:
    theirs.role.may = READ - {"GetRecords"}
    assert call(theirs, "diagnose", "--table", source, "--no-records").exit_code == 0


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"--region": "eu-west-1"}, "--region: eu-west-1 is not the region of --stream"),
    ({"--stream": "arn:aws:kinesis:us-east-1:1:stream/x"}, "--stream: 'arn:aws:kinesis:us-east-1:1:stream/x' is not the ARN of a stream"),
    ({"--role-arn": "reader"}, "--role-arn: 'reader' is not the ARN of a role"),
    ({"--role-arn": "arn:aws-cn:iam::444455556666:role/r"}, "--role-arn: arn:aws-cn:iam::444455556666:role/r is in the partition aws-cn"),
    ({"--role-arn": None}, "--external-id: belongs to --role-arn"),
    ({"--role-session-name": "a b"}, "--role-session-name: 'a b' is not the name of a session"),
]


@pytest.mark.parametrize(("changes", "said"), WRONG, ids=[said for _, said in WRONG])
def test_options_that_no_call_could_use_are_wrong_usage(changes: dict[str, str | None], said: str) -> None:
    arn = f"arn:aws:kinesis:{REGION}:444455556666:stream/orders"
    given = {"--table": "t", "--stream": arn, "--region": REGION, "--role-arn": "arn:aws:iam::444455556666:role/r", "--external-id": "shop"} | changes
    done = CliRunner().invoke(main, ["diagnose", *(word for pair in given.items() if pair[1] is not None for word in pair if word)])
    assert done.exit_code == 2
    assert said in done.output


def test_the_pods_of_the_lab_have_one_key() -> None:
    """Else `Theirs.check` would compare with another one than the commands have."""
    assert Accounts.own_key == "tests"
