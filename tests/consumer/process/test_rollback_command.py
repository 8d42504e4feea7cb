"""`rollback-sink`: what a person sees (docs/how-to/undo-a-deploy.md). The statements are carried out in tests/contract/sinks/test_rollback.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sluice_consumer.__main__ import main
from sluice_consumer.process import rollback_command
from sluice_consumer.sinks.rollback import Rollback

FOUND = Rollback(
    "iceberg", "lake.db.orders", 1041, ("CALL lake.x", "ALTER TABLE y"), ("snapshot 7 of another writer (append)",), ("tag audit holds",)
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    stream, table = {"name": "orders", "region": "eu-west-1"}, {"table": "sluice_default_orders"}
    path.write_text(json.dumps({"format": 1, "stream": stream, "checkpoints": table, "pipeline": {"entrypoint": "orders:process"}}))
    return path


def called(config: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["rollback-sink", "--config", str(config), "--to-batch", "1041", *more])


def test_the_statements_alone_are_on_stdout(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They can be given to a shell of SQL as they are. What to know about them is on stderr."""
    monkeypatch.setattr(rollback_command, "statements", lambda _options: FOUND)
    result = called(config)
    assert (result.exit_code, result.stdout) == (0, "CALL lake.x;\nALTER TABLE y;\n")
    for words in (
        "batch 1041 and all later ones",
        "1 change of others",
        "snapshot 7 of another writer",
        "tag audit holds",
        "nothing was carried out",
    ):
        assert words in result.stderr
    told: dict[str, Any] = json.loads(called(config, "--json").stdout)
    assert (told["statements"], told["batch"], told["sink"]) == (["CALL lake.x", "ALTER TABLE y"], 1041, "iceberg")


def test_a_sink_without_such_a_batch_has_nothing_to_take_out(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollback_command, "statements", lambda _options: Rollback("parquet", "s3a://lake/orders", 1041))
    result = called(config)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "there is nothing to take out" in result.stderr


def test_a_function_of_yours_is_refused_before_spark_starts(config: Path) -> None:
    result = called(config)
    assert result.exit_code == 65
    assert "--sink iceberg --place lake.db.orders" in result.stderr
    result = called(config, "--sink", "iceberg")
    assert result.exit_code == 65
    assert "give it with --place" in result.stderr
