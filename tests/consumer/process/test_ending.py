from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from sluice_checkpoints.errors import Fenced, LeaseHeld, LostRace, ProtocolViolation, Refused
from sluice_consumer.process import ending
from sluice_consumer.process.ending import Ending


@pytest.mark.parametrize(
    ("error", "code"),
    [(Refused("m"), 65), (LeaseHeld("m"), 75), (Fenced("m"), 76), (LostRace("m"), 1), (ProtocolViolation("m"), 1), (ValueError("m"), 1)],
)
def test_an_error_is_an_exit_code_and_its_own_name(error: Exception, code: int) -> None:
    """What the operator does next follows from both."""
    assert ending.of(error) == Ending(code, type(error).__name__, "m")


def test_the_last_words_go_to_the_termination_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Kubernetes shows them in the pod's status."""
    monkeypatch.setenv(ending.LOG, str(tmp_path / "log"))
    ending.report(Ending(65, "Refused", "no such table"))
    assert json.loads((tmp_path / "log").read_text()) == {"reason": "Refused", "message": "no such table"}
    assert capsys.readouterr().err == "Refused: no such table\n"


@pytest.mark.parametrize("message", ["x" * 10_000, "ä" * 10_000, '"' * 10_000, "\n" * 4_000])
def test_a_long_message_is_cut_to_what_kubernetes_keeps(message: str) -> None:
    """And stays JSON: bytes are counted, escapes included."""
    text = ending.fitting(Ending(1, "ValueError", message))
    assert 3000 < len(text.encode()) <= ending.LIMIT
    assert json.loads(text)["message"].endswith("…")


def test_a_short_message_is_whole() -> None:
    """Nothing is added."""
    assert json.loads(ending.fitting(Ending(1, "R", "short"))) == {"reason": "R", "message": "short"}


def test_an_error_of_the_jvm_is_told_in_its_own_words() -> None:
    """py4j's only say which call it was in."""
    error = RuntimeError("An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.")
    error.java_exception = SimpleNamespace(toString=lambda: "java.lang.IllegalArgumentException: Executor memory must be at least")  # type: ignore[attr-defined]
    assert ending.of(error).message == "java.lang.IllegalArgumentException: Executor memory must be at least"
