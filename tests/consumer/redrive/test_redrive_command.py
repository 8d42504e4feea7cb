"""`python -m sluice_consumer redrive`: what a person is told, and what a standard output that takes nothing changes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from sluice_consumer.__main__ import main
from sluice_consumer.redrive import redrive_command

RESULT = {"batch": 8, "consumer": "c-redrive", "ended": "PROCESSED", "redriven": 1, "rejected": ["ä…"], "pending": 2}
Redrive = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def redrive(monkeypatch: pytest.MonkeyPatch) -> Redrive:
    def run(*arguments: str, stdout: str = "", code: int = 0) -> tuple[int, list[str]]:
        commands: list[list[str]] = []

        def ended(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
            commands.append(command)
            return subprocess.CompletedProcess(command, code, stdout)

        monkeypatch.setattr(redrive_command.subprocess, "run", ended)
        with pytest.raises(SystemExit) as end:
            main.main(["redrive", "--config", "c.json", *arguments], standalone_mode=False)
        return int(end.value.code or 0), commands[0]

    return run


def test_a_person_is_told_what_was_redriven_and_what_was_left_out(redrive: Redrive, capsys: pytest.CaptureFixture[str]) -> None:
    """The result is the program's last line; what `process` printed before is not shown."""
    code, _ = redrive(stdout=f"printed by process\n{json.dumps(RESULT)}\n")
    told = "batch 8 of c-redrive is PROCESSED: 1 letter redriven; 2 letters left out: their batches are not known to be committed"
    assert (code, capsys.readouterr().out) == (0, f"{told}\nrejected again, and still a dead letter: ä…\n")


def test_a_program_is_given_the_document(redrive: Redrive, capsys: pytest.CaptureFixture[str]) -> None:
    assert redrive("--json", stdout=json.dumps(RESULT))[0] == 0
    assert json.loads(capsys.readouterr().out) == RESULT


def test_nothing_to_redrive_is_no_failure(redrive: Redrive, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever runs it every night has nothing to do."""
    assert redrive(stdout=json.dumps({"redriven": 0, "pending": 0}))[0] == 0
    assert capsys.readouterr().out == "nothing to redrive\n"


def test_the_options_reach_the_program(redrive: Redrive) -> None:
    """Names of letters may begin with a dash."""
    _, command = redrive("--consumer", "c", "--resume", "--master", "local[1]", "--", "-a.json", stdout=json.dumps(RESULT))
    assert command[3:] == ["--config", "c.json", "--consumer", "c", "--how", "resume", "--master", "local[1]", "--", "-a.json"]


def test_the_exit_code_is_that_of_the_program(redrive: Redrive, capsys: pytest.CaptureFixture[str]) -> None:
    assert redrive(code=65)[0] == 65
    assert "the dead letters were not redriven; the lines above say why" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["people", "json"])
@pytest.mark.parametrize("encoding", ["ascii", None], ids=["ascii", "closed"])
def test_a_result_that_cannot_be_printed_does_not_change_what_was_done(
    redrive: Redrive, encoding: str | None, more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding) if encoding else None)
    assert redrive(*more, stdout=json.dumps(RESULT))[0] == 0
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert ("was not written to stdout" in told) == (encoding is None)
