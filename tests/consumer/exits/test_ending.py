from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sluice_checkpoints import termination_log
from sluice_checkpoints.errors import Fenced, LeaseHeld, LostRace, ProtocolViolation, Refused
from sluice_consumer.exits import ending
from sluice_consumer.exits.ending import Ending
from sluice_consumer.process.child_process import DriverProcess


@pytest.mark.parametrize(
    ("error", "code"),
    [(Refused("m"), 65), (LeaseHeld("m"), 75), (Fenced("m"), 76), (LostRace("m"), 1), (ProtocolViolation("m"), 1), (ValueError("m"), 1)],
)
def test_an_error_is_an_exit_code_and_its_own_name(error: Exception, code: int) -> None:
    assert ending.ending_of(error) == Ending(code, type(error).__name__, "m")


def test_the_last_words_go_to_the_termination_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Kubernetes shows them in the pod's status."""
    monkeypatch.setenv(termination_log.VARIABLE, str(tmp_path / "log"))
    ending.report(Ending(65, "Refused", "no such table"))
    assert json.loads((tmp_path / "log").read_text()) == {"reason": "Refused", "message": "no such table"}
    assert capsys.readouterr().err == "Refused: no such table\n"


@pytest.mark.parametrize("count", [1, 400])
def test_the_last_words_of_a_group_name_its_suspects_and_always_fit(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A termination log holds 4,096 bytes. The message keeps its beginning."""
    monkeypatch.setenv(termination_log.VARIABLE, str(tmp_path / "log"))
    ending.report(Ending(1, "DriverExited", "killed: " + "x" * 3500, working=tuple(f"orders-{at}" for at in range(count))))
    said = json.loads((tmp_path / "log").read_text())
    assert said["working"][0] == "orders-0"
    assert (said["working"][-1] == "…") is (count > 1)  # some are left out
    assert said["message"].startswith("killed: xxx")
    assert len((tmp_path / "log").read_bytes()) <= termination_log.LIMIT


def test_a_termination_log_that_cannot_be_written_is_said_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(termination_log.VARIABLE, "/nowhere/at/all")
    ending.report(Ending(65, "Refused", "no such table"))
    assert "Refused: no such table\nno termination message was left: " in capsys.readouterr().err


def test_an_error_of_the_jvm_is_told_in_its_own_words() -> None:
    """py4j's only say which call it was in."""
    error = RuntimeError("An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.")
    error.java_exception = SimpleNamespace(toString=lambda: "java.lang.IllegalArgumentException: Executor memory must be at least")  # type: ignore[attr-defined]
    assert ending.ending_of(error).message == "java.lang.IllegalArgumentException: Executor memory must be at least"


def test_long_last_words_are_folded_and_end_with_the_next_step() -> None:
    """A person reads them on a screen, and copies names from them."""
    path = "s3a://lake/" + "a" * 200
    lines = ending.folded(f"Refused: {'word ' * 60}\nthe path {path} is not there; make it").splitlines()
    assert [line.strip() for line in lines if len(line) > ending.COLUMNS] == [path]
    assert all(len(line) <= ending.COLUMNS for line in lines if path not in line)
    assert " ".join(" ".join(lines).split()).endswith("is not there; make it")


LEAVING = """
import os, sys
from sluice_consumer.exits import ending
ending.OwnWord.open()
{what}
ending.report(ending.Ending(1, "BatchOverdue", "m"))
ending.leave(0)
"""


@pytest.mark.parametrize(
    "what",
    [
        "",
        "sys.stdout.close()",
        "sys.stdout = None",
        "print('a line in the buffer'); a, b = os.pipe(); os.dup2(b, 1); os.close(a); os.close(b)",
        "sys.stderr.close()",
        "sys.stderr = sys.stdout = None",
    ],
    ids=["as usual", "closed", "taken away", "nobody reads", "errors closed", "both taken away"],
)
def test_a_driver_gives_its_word_whatever_became_of_its_output(what: str) -> None:
    """Else a clean drain would count as a driver that `process` has ended."""
    child = DriverProcess([sys.executable, "-c", LEAVING.format(what=what)])
    try:
        assert (child.wait(60), child.gave_its_word(), child.armed()) == (0, True, None)
    finally:
        child.close()
