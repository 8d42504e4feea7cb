"""Results for people, for scripts and for Kubernetes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from sluice_checkpoints import termination_log
from sluice_checkpoints.stream.model import StreamNotFound
from sluice_consumer.checks import report
from sluice_consumer.checks.model import CheckFinding, CheckOutcome, StartCheckResult

OK = StartCheckResult("config", "the file", CheckFinding(CheckOutcome.OK, "consumer [orders]"), 0.004)
WARNED = StartCheckResult("sink", "the sink", CheckFinding(CheckOutcome.WARNING, "a class is missing"), 0.1)
GONE = StreamNotFound("stream s does not exist in r: [not] there")
FAILED = StartCheckResult("stream", "the stream", CheckFinding(CheckOutcome.FAILED, str(GONE), GONE), 0.25)
SILENT = StartCheckResult("stream", "the stream", CheckFinding(CheckOutcome.NO_ANSWER, "no answer from http://x/"), 2.0)
LEFT = StartCheckResult("table", "the table", CheckFinding(CheckOutcome.NOT_REACHED, ""))


@pytest.mark.parametrize(("results", "code"), [([OK, WARNED], 0), ([OK, FAILED, LEFT], 65), ([OK, SILENT, LEFT], 65)])
def test_a_script_reads_the_exit_code_and_one_document(results: list[StartCheckResult], code: int) -> None:
    assert report.exit_code(results) == code
    found = json.loads(report.as_json(results))
    assert found["ok"] == (code == 0)
    assert found["checks"][0] == {"check": "config", "outcome": "ok", "message": "consumer [orders]", "seconds": 0.004}
    assert [each["outcome"] for each in found["checks"]] == [each.finding.outcome.value for each in results]


def test_a_person_reads_a_table_and_below_it_what_is_wrong_in_one_line() -> None:
    screen = io.StringIO()
    report.show([OK, FAILED, LEFT], Console(file=screen, width=60))
    lines = screen.getvalue().splitlines()
    assert lines[-1] == "stream: stream s does not exist in r: [not] there"
    row = next(line for line in lines if line.startswith("│ table"))
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["table", "not reached", "", "the table"]


def test_a_person_is_told_that_all_is_well_and_what_was_not_tried() -> None:
    screen = io.StringIO()
    report.show([OK, WARNED], Console(file=screen, width=150))
    assert screen.getvalue().splitlines()[-1] == "a consumer can start; what only a write shows was not tried"


@pytest.mark.parametrize(
    ("results", "reason"), [([OK], "Checked"), ([FAILED], "StreamNotFound"), ([SILENT], "NoAnswer")], ids=["well", "failed", "silent"]
)
def test_a_job_of_kubernetes_leaves_a_last_message(
    results: list[StartCheckResult], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(termination_log.VARIABLE, str(tmp_path / "log"))
    report.terminate(results)
    left = json.loads((tmp_path / "log").read_text())
    assert left["reason"] == reason
    assert left["message"] == (results[0].finding.message if reason != "Checked" else "a consumer can start")


def test_a_check_in_a_driver_s_pod_leaves_the_driver_its_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a driver that is killed later would seem to have been checked."""
    monkeypatch.setenv(termination_log.VARIABLE, str(tmp_path / "log"))
    for name in ("NAME", "NAMESPACE", "IP", "UID"):
        monkeypatch.setenv(f"SLUICE_POD_{name}", "x")
    report.terminate([FAILED])
    assert not (tmp_path / "log").exists()
