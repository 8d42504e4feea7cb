"""The command line of `reset`: its options, documents, exit codes and screens (docs/interfaces.md, "Reset")."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from resetting.bench import FOUR, ONE, TABLE, TWO, ZERO, Bench

from sluice_checkpoints.cli import reset
from sluice_checkpoints.cli.main import main
from sluice_checkpoints.cli.report import LoggedProgress, Output
from sluice_checkpoints.positions.ports import ResetPorts
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.termination_log import LIMIT

RESET = ["reset", "--table", TABLE, "--stream", "orders", "--region", "us-east-1"]
FIELDS = {
    "reason",
    "message",
    "state",
    "id",
    "to",
    "shards",
    "counts",
    "recordsAgain",
    "recordsPassedOver",
    "batch",
    "digest",
    "changed",
    "warnings",
    "firstWarnings",
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "termination-log"


@pytest.fixture
def call(bench: Bench, log: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def ports(_options: reset.ResetOptions, _now: object, output: Output) -> ResetPorts:
        return bench.ports(progress=LoggedProgress(output.log))

    monkeypatch.setenv("SLUICE_TERMINATION_LOG", str(log))
    monkeypatch.setattr(reset, "_ports", ports)
    return lambda *arguments: CliRunner().invoke(main, [*RESET, *arguments])


def test_a_reset_ends_with_0_and_a_document(call: Callable[..., Result], log: Path, bench: Bench) -> None:
    result = call("--to", bench.hour(6), "--id", "r1", "--yes", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    plan = document.pop("plan")
    assert json.loads(log.read_text()) == document
    assert document.keys() == FIELDS
    assert (document["reason"], document["state"], document["id"], document["batch"], document["changed"]) == ("Reset", "RESET", "r1", 7, True)
    assert plan[0] == {
        "shard": ZERO,
        "from": {"at": "END"},
        "to": {"at": "END"},
        "move": "unchanged",
        "why": "read to the end before",
        "recordsAgain": 0,
        "recordsPassedOver": 0,
    }
    assert (plan[1]["shard"], plan[1]["move"], plan[1]["recordsAgain"]) == (ONE, "back", None)


def test_a_second_run_with_its_id_ends_with_0_and_the_same_document(call: Callable[..., Result], bench: Bench) -> None:
    first = json.loads(call("--to", bench.hour(6), "--id", "r1", "--yes", "--json").stdout)
    before = bench.end_state()
    again = call("--to", bench.hour(6), "--id", "r1", "--yes", "--json")
    second = json.loads(again.stdout)
    assert again.exit_code == 0
    assert bench.end_state() == before
    assert {name for name in FIELDS if first[name] != second[name]} == {"message", "changed"}
    assert (second["changed"], second["plan"]) == (False, None)


def test_a_dry_run_writes_nothing_and_shows_every_shard(call: Callable[..., Result], bench: Bench) -> None:
    before = bench.end_state()
    shown = call("--to", bench.hour(6), "--dry-run")
    assert shown.exit_code == 0
    assert bench.end_state() == before
    for text in (ZERO, FOUR, "stays", "come again", "PLANNED", "nothing was written", "its oldest record"):
        assert text in shown.stdout
    planned = json.loads(call("--to", bench.hour(6), "--dry-run", "--json").stdout)
    done = json.loads(call("--to", bench.hour(6), "--yes", "--json").stdout)
    assert (planned["state"], done["state"]) == ("PLANNED", "RESET")
    assert planned["digest"] == done["digest"]


def test_a_narrow_terminal_shows_whole_ids(bench: Bench, call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """Folded, not cut: the end of an id is what differs."""
    monkeypatch.setattr("sluice_checkpoints.cli.report.WIDTH", 60)
    shown = call("--to", bench.hour(6), "--dry-run")
    lines = shown.stdout.splitlines()
    assert max(len(line) for line in lines if "│" in line or "┃" in line) <= 60
    cells = "".join(line.split("│")[1].strip() for line in lines if line.startswith("│"))
    assert ZERO in cells
    assert "…" not in cells


def test_without_an_id_one_is_made_that_begins_with_the_date(call: Callable[..., Result]) -> None:
    """So that the command can be run again with it."""
    document = json.loads(call("--to", "latest", "--yes", "--json").stdout)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d{6}Z-[0-9a-f]{4}", document["id"])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--to", "latest"], "Give either '--dry-run' or '--yes'"),
        (["--to", "latest", "--yes", "--dry-run"], "Give either '--dry-run' or '--yes'"),
        (["--yes"], "Give one of '--to', '--to-batch' and '--from-file'"),
        (["--to", "latest", "--from-file", "f", "--yes"], "Give one of '--to', '--to-batch' and '--from-file'"),
        (["--to", "latest", "--to-batch", "4", "--yes"], "Give one of '--to', '--to-batch' and '--from-file'"),
        (["--from-file", "f", "--shard", "shardId-000000000001", "--yes"], "'--shard' is not for '--from-file'"),
        (["--to", "2026-11-27T10:00:00.1234Z", "--yes"], "millisecond"),
        (["--to", "2026-11-27T10:00:00", "--yes"], "has no zone"),
        (["--to", "latest", "--shard", "one", "--yes"], "is not the id of a shard"),
        (["--to", "latest", "--give-up-batch", "0", "--yes"], "--give-up-batch"),
    ],
)
def test_wrong_usage_ends_with_2_by_the_option_s_name(call: Callable[..., Result], arguments: list[str], why: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert why in result.output


def test_an_empty_id_is_refused(call: Callable[..., Result], bench: Bench) -> None:
    """A variable of a shell that is not set: with an id of its own, each run would be carried out."""
    result = call("--to", "trimHorizon", "--id", "", "--yes")
    assert (result.exit_code, "--id ''" in result.output, bench.seen.last_reset) == (65, True, None)


def test_a_refusal_ends_with_65_and_names_the_option(call: Callable[..., Result], bench: Bench, log: Path) -> None:
    bench.row(replace(bench.of(TWO), batch=8))
    result = call("--to", "trimHorizon", "--yes", "--json")
    assert result.exit_code == 65
    assert json.loads(result.stdout)["reason"] == "Refused"
    assert "--give-up-batch 8" in json.loads(log.read_text())["message"]


def test_the_warning_about_a_batch_that_is_given_up_is_kept_in_a_full_termination_message(
    call: Callable[..., Result], bench: Bench, log: Path
) -> None:
    for number in range(60):
        shard = f"shardId-{number + 100:012d}"
        bench.row(replace(bench.of(FOUR), id=shard, batch=8, records=1000, parents=frozenset()))
    assert call("--to", "trimHorizon", "--give-up-batch", "8", "--yes").exit_code == 0
    warning = json.loads(log.read_text())["firstWarnings"][0]
    assert len(log.read_text()) <= LIMIT
    assert warning.startswith("batch 8 is given up: its 60000 records of 60 shards")
    assert len(warning) < 400


def test_the_owner_is_that_of_the_environment() -> None:
    assert reset.owner({}) is None
    assert reset.owner({"SLUICE_OWNER": "shop/orders", "SLUICE_CLUSTER": "prod c1"}) == Owner("shop/orders", ("prod", "c1"), writes=False)
