from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sluice_checkpoints.cli import migrate, show
from sluice_checkpoints.cli.main import main
from sluice_checkpoints.cli.report import LoggedProgress, Output, place, short
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.row_kinds import OwnTable
from sluice_checkpoints.protocol.rows import CONSUMER, SHARD_PREFIX
from sluice_checkpoints.stream.address import StreamAddress
from sluice_lab.fakes.table import MemoryTable

REPOSITORY = Path(__file__).parents[3]
SOURCE, TARGET = "orders-kcl", "sluice-orders"
MIGRATE = ["migrate", "--source", SOURCE, "--stream", "orders", "--target", TARGET, "--region", "us-east-1"]
SHOW = ["show", "--table", TARGET, "--region", "us-east-1"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "termination-log"


@pytest.fixture
def call(bench: Any, log: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def world(_options: migrate.MigrateOptions, output: Any) -> Any:
        return replace(bench.world(), progress=LoggedProgress(output.log))

    monkeypatch.setenv("SLUICE_TERMINATION_LOG", str(log))
    monkeypatch.setattr(migrate, "_ports", world)
    monkeypatch.setattr(show, "client", lambda _endpoint: None)
    monkeypatch.setattr(show, "own_table", lambda name, _api: OwnTable(bench.targets.tables.get(name) or MemoryTable(name)))
    return lambda *arguments: CliRunner().invoke(main, list(arguments))


# -- migrate -----------------------------------------------------------------------------------------------------------------------


def test_a_migration_ends_with_0_and_a_document(call: Callable[..., Result], log: Path, bench: Any) -> None:
    result = call(*MIGRATE, "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (document["reason"], document["state"], document["shards"]) == ("Complete", "COMPLETE", 4)
    assert document["counts"] == {"after": 1, "end": 1, "trimHorizon": 2, "timestamp": 0, "readAgain": 0, "possiblyLost": 0}
    assert [line["shard"] for line in document.pop("plan")] == sorted(bench.places())
    assert json.loads(log.read_text()) == document


def test_a_migration_that_was_complete_ends_with_0_again(call: Callable[..., Result]) -> None:
    first = json.loads(call(*MIGRATE, "--json").stdout)
    again = call(*MIGRATE, "--json")
    document = json.loads(again.stdout)
    assert again.exit_code == 0
    assert "before" in document["message"]
    assert (document["digest"], document["shards"], document["reason"]) == (first["digest"], 4, "Complete")


def test_a_dry_run_shows_every_shard_with_its_reason(call: Callable[..., Result], bench: Any) -> None:
    result = call(*MIGRATE, "--dry-run")
    assert result.exit_code == 0
    for text in (bench.zero, bench.three, "SHARD_END", "no row", "TRIM_HORIZON", "at the source's position", "nothing was written", "digest"):
        assert text in result.stdout
    assert not bench.targets.tables


def test_a_dry_run_says_which_records_come_again_or_are_lost(call: Callable[..., Result], bench: Any) -> None:
    bench.rows[1]["checkpoint"] = {"S": "LATEST"}
    bench.rows[0]["checkpoint"] = {"S": bench.reached}
    bench.stream.expire_shard(bench.zero)
    shown = call(*MIGRATE, "--dry-run").stdout
    for text in ("read again", "possibly lost", "4 shards (1 with records that may be lost, 1 read again from an earlier position), plan "):
        assert text in shown
    plan = {line["shard"]: line for line in json.loads(call(*MIGRATE, "--dry-run", "--json").stdout)["plan"]}
    assert (plan[bench.one]["readAgain"], plan[bench.one]["possiblyLost"]) == (True, False)
    assert (plan[bench.zero]["readAgain"], plan[bench.zero]["possiblyLost"]) == (False, True)


def test_what_may_be_lost_is_said_again_by_whoever_comes_after_the_end(call: Callable[..., Result], bench: Any) -> None:
    """A pod of the Job that dies after its last write has told nobody."""
    bench.rows[0]["checkpoint"] = {"S": bench.reached}
    bench.stream.expire_shard(bench.zero)
    call(*MIGRATE)
    message = json.loads(call(*MIGRATE, "--json").stdout)["message"]
    assert message == "4 shards (1 with records that may be lost), taken over before; nothing was written"


def test_progress_and_warnings_are_for_the_log(call: Callable[..., Result], bench: Any) -> None:
    bench.rows[1]["checkpoint"] = {"S": "LATEST"}
    result = call(*MIGRATE, "--json")
    for text in ("source table", "waiting 60 s", "writing 4 rows", "4 of 4 rows", f"warning {bench.one}: LATEST"):
        assert text in result.stderr
    assert json.loads(result.stdout)["warnings"] == 1


@pytest.mark.parametrize(
    ("spoil", "code", "reason", "named"),
    [
        (lambda b: b.rows[2].update(checkpoint={"S": "SOMEWHERE"}), 65, "Refused", "shardId-000000000002"),
        (lambda b: b.sources.tables.clear(), 65, "Refused", SOURCE),
        (lambda b: setattr(b.stream, "exists", False), 65, "StreamNotFound", "orders"),
        (lambda b: setattr(b.calls, "visit", lambda _: b.move()), 75, "SourceActive", "shardId-000000000001"),
        (lambda b: setattr(b.calls, "lose_at", 0), 1, "ServiceUnavailable", "call 0"),
    ],
)
def test_every_failure_has_its_exit_code_and_names_its_cause(  # noqa: PLR0917 - a table of cases
    call: Callable[..., Result], log: Path, bench: Any, spoil: Callable[[Any], None], code: int, reason: str, named: str
) -> None:
    spoil(bench)
    result = call(*MIGRATE, "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["reason"]) == (code, reason)
    assert named in document["message"]
    assert named in result.stderr
    assert json.loads(log.read_text()) == document


def test_a_refused_row_is_passed_with_the_options_that_the_refusal_names(call: Callable[..., Result], bench: Any) -> None:
    bench.rows[0]["ttl"] = {"N": "1"}
    assert "--ignore-attribute ttl" in json.loads(call(*MIGRATE, "--json").stdout)["message"]
    bench.rows[1]["checkpoint"] = {"S": "SOMEWHERE"}
    ignoring = ["--ignore-attribute", "ttl"]
    assert f"--place {bench.one}=trim-horizon" in json.loads(call(*MIGRATE, *ignoring, "--json").stdout)["message"]
    result = call(*MIGRATE, *ignoring, "--place", f"{bench.one}=trim-horizon", "--json")
    assert result.exit_code == 0
    assert [warning in " ".join(json.loads(result.stdout)["firstWarnings"]) for warning in ("ttl", "--place")] == [True, True]


@pytest.mark.parametrize(
    "wrong",
    [
        ["--unstarted", "yesterday"],
        ["--ignore-attribute", " "],
        ["--place", "shardId-000000000001"],
        ["--place", "shardId-1=END"],
        ["--place", "shardId-000000000001=LATEST"],
        ["--place", "shardId-000000000001=END", "--place", "shardId-000000000001=trim-horizon"],
        ["--format", "papyrus"],
        ["--quiet-seconds", "-1"],
        ["--lease-seconds", "0"],
        ["--timestamp", "noon"],
        ["--timestamp", "2026-11-21T10:00:00"],
        ["--colour", "red"],
    ],
)
def test_wrong_usage_is_told_before_anything_is_asked(call: Callable[..., Result], bench: Any, wrong: list[str]) -> None:
    result = call(*MIGRATE, *wrong)
    assert result.exit_code == 2
    assert wrong[0] in result.stderr
    assert not bench.calls.made


def test_every_option_reaches_the_migrator(call: Callable[..., Result], bench: Any) -> None:
    bench.rows[1]["checkpoint"] = {"S": "AT_TIMESTAMP"}
    bench.rows[2]["checkpoint"] = {"S": "LATEST"}
    options = ["--timestamp", "2022-11-21T10:00:00+01:00", "--unstarted", "now", "--quiet-seconds", "5", "--lease-seconds", "9", "--format", "kcl"]
    assert call(*MIGRATE, *options).exit_code == 0
    assert bench.places()[bench.one] == {"at": "TIMESTAMP", "millis": 1_669_021_200_000}
    assert bench.places()[bench.two]["at"] == "TIMESTAMP"
    assert bench.seconds == 5


def test_the_ports_are_made_without_a_call(bench: Any) -> None:
    del bench
    stream = StreamAddress("s", "us-east-1", "http://127.0.0.1:9")
    options = migrate.MigrateOptions("a", stream, "b", "us-east-1", "auto", None, None, 30, None, "http://127.0.0.1:9", dry_run=True)
    assert migrate._ports(options, Output(as_json=True)).catalog is not None


# -- show --------------------------------------------------------------------------------------------------------------------------


def test_show_tells_where_each_shard_stands(call: Callable[..., Result], bench: Any) -> None:
    call(*MIGRATE)
    bench.table.rows[CONSUMER] |= {"generation": 3, "committed": 41}
    row = bench.table.rows[SHARD_PREFIX + bench.one]
    row |= {"batch": 42, "start": {"at": "AFTER", "sequence": "5", "sub": 3}, "end": {"at": "AFTER", "sequence": "9"}}
    document = json.loads(call(*SHOW, "--json").stdout)
    assert (document["generation"], document["committed"], document["released"]) == (3, 41, True)
    shards = {shard: {key: value for key, value in stands.items() if key != "range"} for shard, stands in document["shards"].items()}
    assert shards[bench.one] == {"at": "AFTER", "sequence": "5", "sub": 3, "lineage": {"parents": [], "children": []}}
    assert shards[bench.zero] == {"at": "END", "lineage": {"parents": [], "children": [bench.two, bench.three]}}
    assert shards[bench.two] == {"at": "TRIM_HORIZON", "lineage": {"parents": [bench.zero], "children": []}}


def test_show_is_a_table_for_people(call: Callable[..., Result], bench: Any) -> None:
    call(*MIGRATE)
    text = call(*SHOW).stdout
    for word in (TARGET, "ACTIVE", "released", f"migration from {SOURCE} (kcl) COMPLETE", bench.three, "TRIM_HORIZON"):
        assert word in text


def test_show_names_no_holder_once_the_stream_was_handed_back(call: Callable[..., Result], bench: Any) -> None:
    """The export was the last to hold the lease, and nobody can take it again."""
    call(*MIGRATE)
    row = bench.table.rows[CONSUMER]
    row |= {"generation": 3, "state": "EXPORTED", "exportedTo": SOURCE, "holder": "export on vm"}
    row.pop("released", None)
    text = call(*SHOW).stdout
    assert "EXPORTED" in text
    assert "held by" not in text


def test_show_tells_of_a_migration_under_way(call: Callable[..., Result], bench: Any) -> None:
    call(*MIGRATE)
    del bench.table.rows[CONSUMER]
    document = json.loads(call(*SHOW, "--json").stdout)
    assert (document["generation"], document["committed"], document["released"]) == (None, None, None)
    assert "no consumer yet" in call(*SHOW).stdout


def test_show_refuses_what_is_no_table_of_ours(call: Callable[..., Result], log: Path) -> None:
    result = call("show", "--table", "nowhere", "--region", "us-east-1")
    assert result.exit_code == 65
    assert "nowhere" in result.stderr
    assert not log.exists()


@pytest.mark.parametrize(
    ("more", "warned"), [(["--region", "eu-wets-1"], True), (["--region", "eu-wets-1", "--dynamodb-endpoint", "http://localhost:1"], False)]
)
def test_a_region_that_no_partition_has_is_named_at_once(call: Callable[..., Result], more: list[str], warned: bool) -> None:  # noqa: FBT001
    said = "warning --region: botocore does not know the region eu-wets-1; did you mean eu-west-1?"
    assert (said in call("show", "--table", TARGET, *more).stderr) is warned


# -- what is written where ---------------------------------------------------------------------------------------------------------


def test_without_a_container_no_termination_log_is_made(call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_TERMINATION_LOG")
    before = Path("/dev/termination-log").exists()
    assert call(*MIGRATE).exit_code == 0
    assert Path("/dev/termination-log").exists() is before


@pytest.mark.parametrize(
    ("long", "expected"),
    [
        ("AFTER 49680415687272674334556884200736274963358048711337836594/3", "AFTER 49680415…1337836594/3"),
        ("49680415687272674334556884200736274963358048711337836594", "49680415…1337836594"),
        ("SHARD_END", "SHARD_END"),
        ("TIMESTAMP 1700000000000", "TIMESTAMP 1700000000000"),
    ],
)
def test_people_see_both_ends_of_a_sequence_number(long: str, expected: str) -> None:
    """The middle says nothing; --json has all of it."""
    assert short(long) == expected


def test_people_see_a_time_and_no_number() -> None:
    assert place(Position.timestamp(1_795_251_600_000)) == "TIMESTAMP 2026-11-21 09:00:00.000+00:00"


def test_the_pure_core_needs_no_third_party_package() -> None:
    package = REPOSITORY / "consumer" / "sluice_checkpoints"
    rooms = ("protocol", "formats", "migrate", "memory", "export")
    names = [f"{room}.{path.stem}" for room in rooms for path in sorted((package / room).glob("[a-z]*.py"))] + ["cli.table_document"]
    program = "import importlib; " + "; ".join(f"importlib.import_module('sluice_checkpoints.{name}')" for name in names)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "consumer")}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {environment['PYTHONPATH']!r}); {program}"],
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
