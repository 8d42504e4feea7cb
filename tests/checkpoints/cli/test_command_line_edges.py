"""The command line where something is odd: an exit code, a document and no traceback, whatever was given and whatever is in the tables."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from sluice_checkpoints.aws.retry import Again, Patience
from sluice_checkpoints.cli import migrate, show, table
from sluice_checkpoints.cli.main import main
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.snapshot import TableKey
from sluice_checkpoints.migrate.store import MigrationStore
from sluice_checkpoints.protocol.row_kinds import OwnTable
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION, SHARD_PREFIX
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_lab.fakes.table import MemoryTable

SOURCE, TARGET = "orders-kcl", "sluice-orders"
REGION = ["--region", "us-east-1"]
MIGRATE = ["migrate", "--source", SOURCE, "--stream", "orders", "--target", TARGET]
SHOW = ["show", "--table", TARGET]
DIAGNOSE = ["diagnose", "--table", SOURCE, "--stream", "orders"]
EXPORT = ["export", "--format", "kcl", "--table", TARGET, "--to", SOURCE, "--stream", "orders"]
ALL = [MIGRATE, SHOW, DIAGNOSE, EXPORT]


@pytest.fixture
def call(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("SLUICE_TERMINATION_LOG", str(tmp_path / "termination-log"))
    monkeypatch.setattr(migrate, "_ports", lambda _options, _output: bench.world())
    monkeypatch.setattr(show, "client", lambda _endpoint: None)
    monkeypatch.setattr(show, "own_table", lambda name, _api: OwnTable(bench.targets.tables.get(name) or MemoryTable(name)))
    return lambda *arguments: CliRunner().invoke(main, [*arguments, *REGION, "--json"])


def told(result: Result) -> tuple[int, str, str]:
    document = json.loads(result.stdout)
    return result.exit_code, document["reason"], document["message"]


# -- options -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ALL, ids=lambda command: command[0])
@pytest.mark.parametrize("url", ["localhost:8000", "", "http://", "ftp://localhost", "http://a b", "http://localhost:99999", "http://[::1", "//h"])
def test_an_endpoint_that_is_no_address_is_wrong_usage(command: list[str], url: str) -> None:
    options = ["--dynamodb-endpoint"] + ["--kinesis-endpoint"] * ("--stream" in command)
    for option in options:
        result = CliRunner().invoke(main, [*command, *REGION, option, url])
        assert result.exit_code == 2
        assert f"{option}': {url!r} is not an address" in result.stderr


@pytest.mark.parametrize(
    "url", ["http://localhost:8000", "https://vpce-1.kinesis.eu-west-1.vpce.amazonaws.com", "http://[::1]:4567", "http://10.0.0.1/"]
)
def test_an_endpoint_with_scheme_and_host_is_taken(call: Callable[..., Result], url: str) -> None:
    assert call(*MIGRATE, "--dynamodb-endpoint", url).exit_code == 0


@pytest.mark.parametrize("command", ALL, ids=lambda command: command[0])
@pytest.mark.parametrize("region", ["", " ", "eu west", "-x", "a" * 64])
def test_a_region_that_no_host_can_have_is_wrong_usage(command: list[str], region: str) -> None:
    """It would be asked for minutes."""
    result = CliRunner().invoke(main, [*command, "--region", region])
    assert (result.exit_code, "must be an AWS region, such as eu-west-1" in result.stderr) == (2, True)


@pytest.mark.parametrize(("again", "times"), [(Again("no address"), 1), (Again("slow down", cause="ThrottlingException"), 0)])
def test_a_service_that_nobody_answers_for_is_said_with_what_to_check(
    call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, again: Again, times: int
) -> None:
    """A region that does not exist looks like a network that is down. A service that answers has said what is wrong."""

    def silent() -> None:
        raise again

    monkeypatch.setattr(show, "own_table", lambda _name, _api: Patience(limit=0).call("DescribeTable of table orders", silent))
    code, reason, message = told(call(*SHOW))
    assert (code, reason) == (1, "ServiceUnavailable")
    assert message.count("; check --region, the endpoint that you gave, if any, and this machine's network: DNS") == times


@pytest.mark.parametrize("command", [MIGRATE, EXPORT], ids=lambda command: command[0])
@pytest.mark.parametrize("option", ["--quiet-seconds", "--lease-seconds"])
@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e300", "604801", "-1"])
def test_a_number_of_seconds_that_nobody_can_wait_is_wrong_usage(command: list[str], option: str, number: str) -> None:
    """`nan` passes every comparison, so it would skip the wait."""
    result = CliRunner().invoke(main, [*command, *REGION, option, number])
    assert (result.exit_code, option in result.stderr) == (2, True)


@pytest.mark.parametrize("name", ["", "ab", "a b", "x" * 256])
def test_a_name_that_no_table_can_have_is_refused_by_every_command(name: str) -> None:
    for command in (SHOW, EXPORT):
        arguments = [name if word == TARGET else word for word in command]
        code, reason, message = told(CliRunner().invoke(main, [*arguments, *REGION, "--dynamodb-endpoint", "http://127.0.0.1:1", "--json"]))
        assert (code, reason, "is not a table name" in message) == (65, "Refused", True)


# -- rows of strangers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"id": MIGRATION}, "row migration has no attribute 'source'"),
        ({"id": CONSUMER}, "row consumer has format None"),
        ({"id": SHARD_PREFIX + "1"}, "another program"),
        ({"id": SHARD_PREFIX + "1", "start": "here"}, "another program"),
        ({"id": "user-1"}, "another program"),
    ],
)
def test_a_target_with_rows_of_a_stranger_is_refused_untouched(call: Callable[..., Result], bench: Any, row: dict[str, Any], named: str) -> None:
    """Any table may have a key named id."""
    bench.targets.tables[TARGET] = MemoryTable(TARGET)
    bench.table.rows[row["id"]] = dict(row)
    code, reason, message = told(call(*MIGRATE))
    assert (code, reason) == (65, "Refused")
    assert named in message
    assert bench.table.rows == {row["id"]: row}


@pytest.mark.parametrize(
    ("row", "change", "named"),
    [
        (MIGRATION, {"risks": "many"}, "row migration: attribute risks is 'many'"),
        (MIGRATION, {"streamCreated": "5"}, "row migration: attribute streamCreated is '5'"),
        (CONSUMER, {"committed": "7"}, "row consumer: attribute committed is '7'"),
        (CONSUMER, {"released": 1}, "row consumer: attribute released is 1"),
        (SHARD_PREFIX + "shardId-000000000001", {"end": {"at": "THERE"}}, "row shard/shardId-000000000001: unknown position"),
        (SHARD_PREFIX + "shardId-000000000001", {"end": {"at": "AFTER", "sequence": 5}}, "sequence of a position is 5"),
        (SHARD_PREFIX + "shardId-000000000001", {"children": [{"id": 5, "parents": frozenset()}]}, "attribute children names 5"),
    ],
)
def test_a_row_that_was_changed_by_hand_is_refused_naming_it(
    call: Callable[..., Result], bench: Any, row: str, change: dict[str, Any], named: str
) -> None:
    call(*MIGRATE)
    bench.table.rows[row] |= change
    code, reason, message = told(call(*SHOW))
    assert (code, reason) == (65, "Refused")
    assert f"table {TARGET} belongs to another program, or was changed by hand" in message
    assert named in message


def test_a_number_that_sluice_does_not_write_is_refused_naming_its_row() -> None:
    """DynamoDB's numbers are decimal."""

    class Broken(MemoryTable):
        def scan(self) -> Any:
            raise TypeError("row user-1: invalid literal for int() with base 10: '1.5'")
            yield

    with pytest.raises(Refused, match=r"belongs to another program.*row user-1: invalid literal"):
        MigrationStore(Broken("t")).strangers()


# -- what is promised whatever happens ---------------------------------------------------------------------------------------------


def test_a_termination_log_that_cannot_be_written_changes_no_result(call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """The migration is complete; only its last words are missing, and that is said."""
    monkeypatch.setenv("SLUICE_TERMINATION_LOG", "/nowhere/at/all")
    result = call(*MIGRATE)
    assert (result.exit_code, json.loads(result.stdout)["state"]) == (0, "COMPLETE")
    assert "no termination message was left" in result.stderr


def test_a_fault_of_this_program_has_a_document_too(call: Callable[..., Result], bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_options: Any, _output: Any) -> Any:
        raise ZeroDivisionError("a bug")

    del bench
    monkeypatch.setattr(migrate, "_ports", broken)
    result = call(*MIGRATE)
    assert told(result) == (1, "ZeroDivisionError", "a bug")
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(
    ("code", "message", "exit_code", "word"),
    [
        ("InvalidSignatureException", "no", 65, "credentials"),
        ("ValidationException", "no", 65, "names"),
        ("ValidationException", "KMS key arn:aws:kms:x is disabled", 65, "enable the table's KMS key"),
        ("ValidationException", "Transaction payload size cannot exceed 4MB", 65, "report it"),
        ("ItemCollectionSizeLimitExceededException", "no", 1, "ItemCollection"),
    ],
)
def test_what_the_service_will_say_again_is_a_refusal(  # noqa: PLR0917 - a table of cases
    call: Callable[..., Result], bench: Any, monkeypatch: pytest.MonkeyPatch, code: str, message: str, exit_code: int, word: str
) -> None:
    """Whoever repeats the call gets the same answer; anything else may pass."""

    def answer(*_: Any) -> Any:
        raise ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "Scan")

    monkeypatch.setattr(migrate, "_ports", lambda _options, _output: replace(bench.world(), token=answer, targets=bench.targets))
    monkeypatch.setattr(bench.targets, "find", answer)
    result = told(call(*MIGRATE))
    assert (result[0], word in result[2], "names" in result[2]) == (exit_code, True, word == "names")


# -- another system's table, and options that come too late ------------------------------------------------------------------------


class Described:
    def __init__(self, key: tuple[TableKey, ...] | None) -> None:
        self.key = key

    def describe_table(self, **_: Any) -> Any:
        if self.key is None:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "x")
        attributes = [{"AttributeName": k.name, "AttributeType": k.type} for k in self.key]
        return {"Table": {"AttributeDefinitions": attributes, "KeySchema": [{"AttributeName": k.name, "KeyType": k.kind} for k in self.key]}}


@pytest.mark.parametrize(
    ("key", "word"), [((TableKey("leaseKey", "HASH", "S"),), r"leaseKey HASH S\), not \(id HASH S"), (None, "there is no table")]
)
def test_a_table_of_another_system_is_refused_by_its_key(key: Any, word: str) -> None:
    """`show` and `export --table` on a KCL table: the wrong table was named."""
    with pytest.raises(Refused, match=word):
        table.own_table("orders-kcl", Described(key))
    assert table.own_table(TARGET, Described((TableKey("id", "HASH", "S"),))).name == TARGET


def test_options_that_differ_from_those_of_a_complete_migration_are_told(call: Callable[..., Result], bench: Any) -> None:
    bench.rows[1]["checkpoint"] = {"S": "LATEST"}
    call(*MIGRATE, "--unstarted", "now")
    assert json.loads(call(*MIGRATE, "--unstarted", "now").stdout)["warnings"] == 0
    result = call(*MIGRATE, "--unstarted", "trim-horizon", "--timestamp", "2020-01-01T00:00:00Z", "--format", "vmware-go-kcl")
    assert result.exit_code == 0
    warnings = json.loads(result.stdout)["firstWarnings"]
    assert [warning.partition(" has no effect")[0] for warning in warnings] == [
        "--format vmware-go-kcl",
        "--timestamp (1577836800000)",
        "--unstarted (trim-horizon)",
    ]
    assert "it was now when" in warnings[2]


@pytest.mark.parametrize(("value", "advice"), [("2023-01-01", "2023-01-01T00:00:00Z"), ("2023-01-01T10:30", "2023-01-01T10:30:00Z")])
def test_the_time_that_is_advised_is_one_that_is_taken(call: Callable[..., Result], value: str, advice: str) -> None:
    refused = call(*MIGRATE, "--timestamp", value)
    assert (refused.exit_code, f"write {advice} for UTC" in " ".join(refused.stderr.split())) == (2, True)
    assert call(*MIGRATE, "--timestamp", advice).exit_code == 0


@pytest.mark.parametrize("command", [MIGRATE, SHOW])
@pytest.mark.parametrize("setting", ["no such profile", "a broken file"])
def test_settings_of_aws_that_cannot_be_used_are_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], setting: str) -> None:
    """Somebody has to act: another try ends the same way."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    config = tmp_path / "config"
    config.write_text("[profile a]\nregion = x\n" if setting == "no such profile" else "[[[\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    if setting == "no such profile":
        monkeypatch.setenv("AWS_PROFILE", "b")
    result = CliRunner().invoke(main, [*command, *REGION, "--json"])
    assert result.exit_code == 65
    assert "AWS_PROFILE" in json.loads(result.stdout)["message"]


@pytest.mark.parametrize("name", ["", "arn:aws:kinesis:us-east-1:000000000000:stream/orders", "x" * 129])
def test_a_name_that_no_stream_can_have_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="is not a stream name"):
        BotoStreamCatalog(StreamAddress(name, "us-east-1")).describe()
