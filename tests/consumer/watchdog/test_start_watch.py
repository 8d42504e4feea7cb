"""A start has an end and a voice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluice_checkpoints import termination_log
from sluice_consumer.watchdog.start_watch import START_SECONDS, StartWatch


@pytest.mark.parametrize(("ends", "left"), [(400.0, []), (float("inf"), [1])])
def test_a_step_that_does_not_end_is_said_at_growing_intervals_and_ends_the_driver(
    ends: float, left: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark waits for a service that does not answer; the supervisor goes on beating."""
    monkeypatch.setenv(termination_log.VARIABLE, str(tmp_path / "log"))
    time, exits = [0.0], list[int]()

    def wait(seconds: float) -> bool:
        assert seconds > 0
        time[0] = min(time[0] + seconds, ends)
        return time[0] >= ends

    with caplog.at_level("WARNING"):
        StartWatch("the start of Spark", exits.append, lambda: time[0]).run(wait)
    assert exits == left
    said = [said for record in caplog.records if "has taken" in (said := record.getMessage())]
    assert said[:3] == [f"the start of Spark has taken {n} s; the driver ends after 1800 s" for n in (60, 120, 240)]
    if left:
        assert time[0] == START_SECONDS
        assert len(said) == 5
        assert json.loads((tmp_path / "log").read_text())["reason"] == "StartOverdue"
