"""Wheel and sdist: the same files give the same bytes, wherever and whenever, and the programs in them start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.machine import apiserver
from sluice_lab.release import archives, versions, wheels
from sluice_lab.release.source import SourceTree

PARTS = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "constraints/all.txt", "consumer", "operator", "lab")
VERSION = versions.of_python(versions.declared(places.REPO))
EPOCH = 1_700_000_000


def copied(folder: Path, when: float, mask: int) -> SourceTree:
    for name in PARTS:
        origin, target = places.REPO / name, folder / name
        if origin.is_dir():
            shutil.copytree(origin, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(origin, target)
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode & ~mask)
        os.utime(path, (when, when))
    return SourceTree(folder, "", EPOCH)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> wheels.Packages:
    folder = tmp_path_factory.mktemp("packages")
    return wheels.build(copied(folder / "source", EPOCH, 0o000), VERSION, folder / "dist")


def test_the_same_files_give_the_same_bytes(built: wheels.Packages, tmp_path: Path) -> None:
    again = wheels.build(copied(tmp_path / "elsewhere", EPOCH - 10**6, 0o055), VERSION, tmp_path / "dist")
    assert again.wheel.read_bytes() == built.wheel.read_bytes()
    assert again.sdist.read_bytes() == built.sdist.read_bytes()


def test_the_sdist_gives_the_same_wheel(built: wheels.Packages, tmp_path: Path) -> None:
    """So who builds from it has what was released, and nothing that the wheel needs is missing."""
    with tarfile.open(built.sdist) as tar:
        tar.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    assert wheels.build(SourceTree(folder, "", EPOCH), VERSION, tmp_path / "dist").wheel.read_bytes() == built.wheel.read_bytes()


def test_the_wheel_has_the_product_and_no_more(built: wheels.Packages) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "consumer/*sluice*", "operator"], cwd=places.REPO, check=True, capture_output=True, text=True
    )
    tracked = {name.partition("/")[2] for name in listed.stdout.split() if (places.REPO / name).exists()}
    assert names == tracked
    assert {"sluice_consumer/py.typed", "sluice_checkpoints/py.typed"} <= names


def test_the_distribution_is_not_called_as_the_package_of_somebody_else(built: wheels.Packages) -> None:
    """`sluice` on the public index is not this."""
    assert built.wheel.name == f"sluice_kinesis-{VERSION}-py3-none-any.whl"
    assert built.sdist.name == f"sluice_kinesis-{VERSION}.tar.gz"


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
    assert answer.stdout.startswith("Usage: sluice [OPTIONS] COMMAND")


def test_sluice_says_its_version(environment: Path) -> None:
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


@pytest.mark.built
def test_kubectl_finds_its_plugin(environment: Path) -> None:
    kubectl = apiserver.kubectl(places.work())
    path = {"PATH": f"{environment}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": sysconfig.get_path("purelib")}
    answer = subprocess.run([kubectl, "sluice", "diagnose", "--help"], capture_output=True, text=True, check=False, env={**os.environ, **path})
    assert answer.stdout.startswith("Usage: kubectl sluice diagnose [OPTIONS]"), answer.stderr


def test_an_archive_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    written = []
    for number, names in enumerate((["b", "a/c"], ["a/c", "b"])):
        folder = tmp_path / str(number)
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
            os.utime(folder / name, (number, number))
            (folder / name).chmod(0o600 if number else 0o644)
        archives.pack(folder, tmp_path / f"{number}.tgz", EPOCH, compressed=True)
        written.append((tmp_path / f"{number}.tgz").read_bytes())
    assert written[0] == written[1]
    with tarfile.open(tmp_path / "0.tgz") as tar:
        assert [(entry.name, entry.mode, entry.mtime) for entry in tar] == [("a/c", 0o644, EPOCH), ("b", 0o644, EPOCH)]
