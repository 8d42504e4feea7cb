"""`migrate --plan`: which migration a manifest asks for. What a migration then does: tests/checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from sluice_checkpoints.cli import migrate as cli_migrate
from sluice_kubectl.cli.group import program

Json = dict[str, Any]
SPEC: Json = {
    "stream": {"name": "orders", "region": "eu-west-1"},
    "pipeline": {"entrypoint": "orders:process", "image": "orders:1"},
    "migrateFrom": {"table": "orders-kcl", "format": "KCL", "timestamp": "2026-11-21T10:00:00Z"},
}


def manifest(path: Path, spec: Json, *others: Json) -> str:
    body = {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": {"name": "orders", "namespace": "shop"}, "spec": spec}
    path.write_text(yaml.safe_dump_all([{"kind": "ConfigMap", "metadata": {"name": "code"}}, body, *others]))
    return str(path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[cli_migrate.MigrateOptions]:
    found: list[cli_migrate.MigrateOptions] = []
    monkeypatch.setattr(cli_migrate, "run", lambda options, _output: found.append(options))
    return found


def test_a_plan_is_of_the_migration_that_the_operator_would_run(asked: list[cli_migrate.MigrateOptions], tmp_path: Path) -> None:
    answer = CliRunner().invoke(program, ["migrate", "--plan", manifest(tmp_path / "m.yaml", SPEC)])
    assert answer.exit_code == 0, answer.output
    (options,) = asked
    assert (options.source, options.stream.name, options.target, options.region) == ("orders-kcl", "orders", "sluice_shop_orders", "eu-west-1")
    assert (options.format_, options.unstarted, options.timestamp) == ("kcl", "trim-horizon", 1_795_255_200_000)
    assert options.dry_run


def test_an_option_of_the_command_line_wins(asked: list[cli_migrate.MigrateOptions], tmp_path: Path) -> None:
    CliRunner().invoke(program, ["migrate", "--target", "mine", "--plan", manifest(tmp_path / "m.yaml", SPEC), "--region", "eu-west-2"])
    assert [(options.target, options.region, options.dry_run) for options in asked] == [("mine", "eu-west-2", True)]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({key: value for key, value in SPEC.items() if key != "migrateFrom"}, "no migrateFrom, so no migration"),
        (SPEC | {"replicas": -1}, "replicas"),
        (SPEC | {"migrateFrom": {"table": "orders-kcl", "fromat": "KCL"}}, "fromat"),
    ],
)
def test_a_manifest_without_a_migration_is_refused(asked: list[cli_migrate.MigrateOptions], tmp_path: Path, spec: Json, words: str) -> None:
    answer = CliRunner().invoke(program, ["migrate", "--plan", manifest(tmp_path / "m.yaml", spec)])
    assert answer.exit_code == 2
    assert words in answer.output
    assert asked == []


def test_a_file_with_two_consumers_is_refused(asked: list[cli_migrate.MigrateOptions], tmp_path: Path) -> None:
    answer = CliRunner().invoke(program, ["migrate", "--plan", manifest(tmp_path / "m.yaml", SPEC, {"kind": "KinesisConsumer"})])
    assert answer.exit_code == 2
    assert "has 2 KinesisConsumers; next: give it a file with one" in " ".join(answer.output.split())
    assert asked == []


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    answer = CliRunner().invoke(program, ["migrate", "--plan", str(tmp_path / "absent.yaml")])
    assert answer.exit_code == 2
    assert "absent.yaml cannot be read: No such file or directory" in " ".join(answer.output.split())


def test_a_file_that_is_not_yaml_is_told(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("a: [")
    answer = CliRunner().invoke(program, ["migrate", "--plan", str(file)])
    assert answer.exit_code == 2
    assert "m.yaml is not valid YAML" in " ".join(answer.output.split())
