"""The program `sluice`: what it has depends on what is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Runs `sluice` where some packages are not installed, though they are here.
PROGRAM = """
import sys
missing = sys.argv.pop(1).split(",")

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from sluice_consumer.cli import main
main()
"""
CONSUMERS = "pyspark,numpy,cbor2,pyarrow,pandas,kubernetes,orjson,prometheus_client,pybase64"  # not of the extra `checkpoints`
TABLES = {"migrate", "export", "diagnose", "show", "adopt", "dead-letters"}


def sluice(missing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What it says without these packages."""
    return subprocess.run([sys.executable, "-c", PROGRAM, missing, *arguments], capture_output=True, text=True, check=False)


def commands(text: str) -> set[str]:
    """Those that a help lists."""
    listed = text.partition("Commands:\n")[2].partition("\n\n")[0]
    return {line.split()[0] for line in listed.splitlines() if not line.startswith("   ")}


def test_it_has_the_commands_of_both_programs() -> None:
    """Those for tables, and those that run a consumer."""
    assert commands(sluice("", "--help").stdout) == TABLES | {"run", "dev"}


def test_with_the_extra_checkpoints_it_has_the_commands_for_tables() -> None:
    """And says how the others come."""
    said = sluice(CONSUMERS, "--help").stdout
    assert commands(said) == TABLES
    assert "Not here: run and dev." in said
    assert "with its extra consumer" in " ".join(said.split())


def test_without_an_extra_it_says_which_to_install() -> None:
    """Instead of a stack."""
    answer = sluice("click", "diagnose")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith("sluice: the Python package click is not installed; next: install Sluice with its extra checkpoints (README.md")


@pytest.mark.parametrize(
    ("arguments", "code", "words"), [(["run"], 2, "Missing option '--config'"), (["run", "--config", "absent.json"], 65, "absent.json")]
)
def test_run_is_the_consumer(arguments: list[str], code: int, words: str) -> None:
    """With its own refusals and exit codes."""
    answer = sluice("", *arguments)
    assert answer.returncode == code
    assert words in answer.stdout + answer.stderr
