"""The wheel has the product, and the programs in it start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.release import versions, wheels
from sluice_lab.release.source import SourceTree

VERSION = versions.of_python(versions.declared(places.REPO))


@pytest.fixture(scope="module")
def built(source: SourceTree, tmp_path_factory: pytest.TempPathFactory) -> wheels.Packages:
    return wheels.build(source, VERSION, tmp_path_factory.mktemp("packages"))


def test_the_wheel_has_the_product_and_no_more(built: wheels.Packages) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "consumer/*sluice*", "operator"], cwd=places.REPO, check=True, capture_output=True, text=True
    )
    tracked = {name.partition("/")[2] for name in listed.stdout.split() if (places.REPO / name).exists()}
    assert names == tracked
    assert {"sluice_consumer/py.typed", "sluice_checkpoints/py.typed"} <= names


@pytest.fixture(scope="module")
def environment(built: wheels.Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, str(built.wheel)], check=True)
    return folder / "bin"


def said(*command: str, found: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | ({"PYTHONPATH": found} if found else {})
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables, cwd=cwd)


def test_sluice_without_an_extra_says_what_to_install(environment: Path) -> None:
    answer = said(str(environment / "sluice"), "--help")
    assert (answer.returncode, answer.stdout) == (1, "")
    next_step = "next: install Sluice with its extra kubectl or checkpoints (README.md"
    assert answer.stderr.startswith(f"sluice: the Python package click is not installed; {next_step}")


def test_sluice_has_the_commands_of_both_programs(environment: Path) -> None:
    answer = said(str(environment / "sluice"), "--help", found=sysconfig.get_path("purelib"))
    commands = {line.split()[0] for line in answer.stdout.partition("Commands:")[2].splitlines() if line.strip()}
    assert {"migrate", "export", "diagnose", "show", "adopt", "dead-letters", "run", "dev", "status", "restart", "report"} <= commands, answer.stderr
    assert said(str(environment / "sluice"), "--version", found=sysconfig.get_path("purelib")).stdout == f"{VERSION}\n"


def test_sluice_finds_a_module_in_the_folder_where_it_is_run(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text("def process(batch, info): ...\n")
    stream = {"name": "orders", "region": "eu-west-1", "kinesisEndpoint": "http://127.0.0.1:1", "dynamodbEndpoint": "http://127.0.0.1:1"}
    config = {"stream": stream, "checkpoints": {"table": "orders-sluice"}, "pipeline": {"entrypoint": "orders:process"}}
    (tmp_path / "consumer.json").write_text(json.dumps(config))
    command = ("run", "--config", "consumer.json", "--check", "--json", "--check-seconds", "60")
    answer = said(str(environment / "sluice"), *command, found=sysconfig.get_path("purelib"), cwd=tmp_path)
    found = {one["check"]: (one["outcome"], one["message"]) for one in json.loads(answer.stdout)["checks"]}
    assert found["entrypoint"] == ("ok", "orders:process can be imported"), answer.stderr
