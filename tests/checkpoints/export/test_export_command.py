from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from exporting.bench import FOUR, OLD, ONE, TABLE, THREE, TWO, ZERO, Bench

from sluice_checkpoints.cli import export
from sluice_checkpoints.cli.main import main
from sluice_checkpoints.cli.report import LoggedProgress
from sluice_checkpoints.protocol.rows import ShardRow

EXPORT = ["export", "--table", TABLE, "--to", OLD, "--stream", "orders", "--region", "us-east-1"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "termination-log"


@pytest.fixture
def call(each: Bench, log: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def world(_options: export.ExportOptions, output: Any) -> Any:
        return replace(each.world(), progress=LoggedProgress(output.log))

    monkeypatch.setenv("SLUICE_TERMINATION_LOG", str(log))
    monkeypatch.setattr(export, "_ports", world)
    return lambda *arguments: CliRunner().invoke(main, [*EXPORT, "--format", each.writer.name, *arguments])


def test_an_export_ends_with_0_and_a_document(call: Callable[..., Result], log: Path, each: Bench) -> None:
    result = call("--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (document["reason"], document["state"], document["shards"]) == ("Exported", "EXPORTED", 5)
    assert document["counts"] == each_counts(each)
    assert [line["shard"] for line in document.pop("plan")] == [ZERO, ONE, TWO, THREE, FOUR]
    assert json.loads(log.read_text()) == document


def each_counts(bench: Bench) -> dict[str, int]:
    """KCL's and go-kcl's rows had owners or leases everywhere; NiFi's row of shard 2 and kinsumer's of 0 and 2 said so already."""
    unchanged = {"kcl": 0, "nifi": 1, "vmware-go-kcl": 0, "kinsumer": 2}[bench.writer.name]
    return {"written": 5 - unchanged, "unchanged": unchanged, "kept": 0, "readAgain": 0}


def test_an_export_that_was_done_ends_with_0_again(call: Callable[..., Result]) -> None:
    call()
    again = call("--json")
    document = json.loads(again.stdout)
    assert again.exit_code == 0
    assert (document["reason"], document["shards"], document["plan"]) == ("Exported", None, [])
    assert "before" in document["message"]


def test_a_dry_run_shows_every_shard_with_its_reason(call: Callable[..., Result], each: Bench) -> None:
    result = call("--dry-run")
    assert result.exit_code == 0
    for text in (ZERO, FOUR, "END", "its position", "finished", each.first[-8:], each.second[-8:], "nothing was written", "PLANNED"):
        assert text in result.stdout
    assert each.consumer["generation"] == 3


def test_warnings_and_progress_go_to_stderr(call: Callable[..., Result], each: Bench) -> None:
    further = each.advance(TWO)
    result = call("--json")
    document = json.loads(result.stdout)
    assert document["counts"]["kept"] == 1
    assert document["warnings"] == len(document["firstWarnings"]) >= 1
    for text in (further, "taking the consumer's lease", "waiting", "writing", "reading what was written"):
        assert text in result.stderr


def test_the_table_shows_what_is_kept_and_what_comes_again(call: Callable[..., Result], each: Bench) -> None:
    each.advance(TWO)
    each.put(ShardRow.from_item(each.table.rows[f"shard/{ONE}"] | {"batch": 8}))
    result = call()
    for text in ("kept: ", "is further", "open batch 8", "come again", "EXPORTED"):
        assert text in result.stdout


@pytest.mark.parametrize(
    ("spoil", "code", "reason", "named"),
    [
        (lambda b: b.row(TWO).update(new={"S": "x"}), 65, "Refused", "new"),
        (lambda b: setattr(b.stream, "exists", False), 65, "StreamNotFound", "orders"),
        (lambda b: setattr(b.calls, "visit", lambda what: b.advance(TWO) and None if what == "before wake" else None), 75, "SourceActive", TWO),
        (lambda b: (b.consumer.pop("released"), setattr(b.calls, "visit", lambda _: b.consumer.update(counter=b.seconds))), 75, "LeaseHeld", "alive"),
        (lambda b: setattr(b.calls, "lose_at", 3), 1, "ServiceUnavailable", "call 3"),
    ],
)
def test_every_failure_has_its_exit_code_and_names_its_cause(  # noqa: PLR0917 - a table of cases
    call: Callable[..., Result], log: Path, each: Bench, spoil: Callable[[Any], None], code: int, reason: str, named: str
) -> None:
    spoil(each)
    result = call("--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["reason"]) == (code, reason)
    assert named in document["message"]
    assert named in result.stderr
    assert json.loads(log.read_text()) == document


@pytest.mark.parametrize("wrong", [["--format", "sluice"], ["--format", "auto"], ["--quiet-seconds", "-1"], ["--lease-seconds", "0"]])
def test_wrong_usage_ends_with_2(wrong: list[str]) -> None:
    assert CliRunner().invoke(main, [*EXPORT, "--format", "kcl", *wrong]).exit_code == 2
    assert CliRunner().invoke(main, EXPORT).exit_code == 2
