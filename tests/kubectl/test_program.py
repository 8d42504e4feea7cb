"""The program `sluice`: what it has depends on what is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from sluice_kubectl.cli.group import program

# Runs `sluice` where some packages are not installed, though they are here.
PROGRAM = """
import sys
missing = sys.argv.pop(1).split(",")

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from sluice_kubectl.program import main
main()
"""
CONSUMERS = "pyspark,numpy,cbor2,pyarrow,pandas"  # of no other extra
CLUSTERS = "kubernetes,orjson,prometheus_client"  # of the extras `kubectl` and `consumer`
AWS = "boto3,botocore"
TABLES = {"migrate", "export", "reset", "diagnose", "show", "adopt", "dead-letters"}
KUBECTL = {"status", "shards", "lag", "events", "logs", "restart", "pause", "resume", "drain", "retry", "force", "report"}


def sluice(missing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM, missing, *arguments], capture_output=True, text=True, check=False)


def commands(text: str) -> set[str]:
    listed = text.partition("Commands:\n")[2].partition("\n\n")[0]
    return {line.split()[0] for line in listed.splitlines() if not line.startswith("   ")}


def test_it_has_the_commands_of_three_programs() -> None:
    assert commands(sluice("", "--help").stdout) == KUBECTL | TABLES | {"run", "dev", "rollback-sink"}


@pytest.mark.parametrize(
    ("missing", "extra", "there"),
    [
        (f"{CONSUMERS},{AWS}", "consumer", KUBECTL),
        (f"{CONSUMERS},{AWS}", "checkpoints", KUBECTL),
        (f"{CONSUMERS},{CLUSTERS}", "kubectl", TABLES),
    ],
)
def test_what_is_not_installed_is_left_out_and_the_help_says_how_it_comes(missing: str, extra: str, there: set[str]) -> None:
    said = sluice(missing, "--help").stdout
    assert commands(said) == there
    assert f"with its extra {extra}" in " ".join(said.split())


@pytest.mark.parametrize(
    ("missing", "command", "extra"), [(CLUSTERS, "status", "kubectl"), (AWS, "show", "checkpoints"), (CONSUMERS, "run", "consumer")]
)
def test_a_command_that_is_not_installed_says_which_extra_it_needs(missing: str, command: str, extra: str) -> None:
    answer = sluice(missing, command)
    assert (answer.returncode, answer.stdout) == (2, "")
    said = " ".join(answer.stderr.split())
    assert f"{command} needs the Python package" in said
    assert f"next: install Sluice with its extra {extra}" in said


def test_without_an_extra_it_says_which_to_install() -> None:
    answer = sluice("click", "diagnose")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith(
        "sluice: the Python package click is not installed; next: install Sluice with its extra kubectl or checkpoints (README.md"
    )


def test_a_look_at_a_cluster_loads_neither_aws_nor_spark() -> None:
    """A person with a pager waits for it."""
    look = "import sys; from sluice_kubectl.cli.group import program; program.get_command(None, 'status')"
    program = f"{look}; print(sorted({{'botocore', 'boto3', 'pyspark', 'pyarrow'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"), [(["run"], 2, "Missing option '--config'"), (["run", "--config", "absent.json"], 65, "absent.json")]
)
def test_run_is_the_consumer(arguments: list[str], code: int, words: str) -> None:
    answer = sluice("", *arguments)
    assert answer.returncode == code
    assert words in answer.stdout + answer.stderr


@pytest.mark.parametrize(("name", "told"), [("statsu", "did you mean status?"), ("migrat", "did you mean migrate?"), ("orders", "No such command")])
def test_a_name_that_is_almost_a_commands_is_told_that_command(name: str, told: str) -> None:
    answer = CliRunner().invoke(program, [name])
    assert (answer.exit_code, told in answer.output) == (2, True)
