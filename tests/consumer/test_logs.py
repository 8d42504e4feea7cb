"""Lines for people on a terminal, for machines, and for a notebook."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from sluice_consumer import logs


def test_a_line_is_one_json_object_with_its_traceback() -> None:
    try:
        int("seven")
    except ValueError:
        record = logging.LogRecord("sluice", logging.ERROR, "f", 1, "batch %d failed", (7,), sys.exc_info())
    line = json.loads(logs.JsonLines().format(record))
    assert (line["level"], line["logger"], line["message"]) == ("error", "sluice", "batch 7 failed")
    assert "ValueError: invalid literal" in line["error"]
    assert line["time"].endswith("+00:00")


def test_lines_go_to_whoever_asks_and_for_that_time_to_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    before = (logs.log.level, logs.log.propagate, list(logs.log.handlers))
    with logs.told_to(told.append):
        logs.say("batch 1")
        logs.warn("careful")
    logs.warn("afterwards")
    assert [line.split(" ", 1)[1] for line in told] == ["batch 1", "careful"]
    assert caplog.messages == ["afterwards"]
    assert (logs.log.level, logs.log.propagate, list(logs.log.handlers)) == before


@pytest.mark.parametrize(("told", "level"), [("debug", logging.DEBUG), ("WARNING", logging.WARNING), ("", logging.INFO), ("loud", logging.INFO)])
def test_a_level_is_that_of_the_environment_if_it_names_one(told: str, level: int) -> None:
    environment = {logs.LEVEL: told}
    assert logs.level(environment) == level
    assert logs.debugging(environment) == (level == logging.DEBUG)
    assert logs.level({}) == logging.INFO
