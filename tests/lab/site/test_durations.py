"""README's minutes are those of durations.toml, and a run's figure gets there by a command."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.site import durations
from sluice_operator.generate import markdown

DAY = datetime.date(2026, 12, 24)
SUITE = (
    '<testsuites><testsuite timestamp="2026-12-24T10:{}:00.000000+00:00" time="{}">'
    '<testcase classname="tests.test_a" name="test_b" time="1"/></testsuite></testsuites>'
)


def test_readme_has_the_minutes_of_the_file() -> None:
    """Else: make generate."""
    text = (places.REPO / "README.md").read_text()
    assert durations.filled(text) == text
    assert "durations" in {name for _, name, _ in markdown.PART.findall(text)}


@pytest.mark.parametrize("command", durations.COMMANDS)
@pytest.mark.parametrize("run", durations.RUNS)
def test_a_figure_is_kept_with_its_day_and_changes_no_other(command: str, run: str) -> None:
    """Whether there was one or not."""
    before = durations.FILE.read_text()
    after = tomllib.loads(durations.kept(before, command, run, 123, DAY))
    expected = tomllib.loads(before)
    expected[command][run] = 123
    assert after == {**expected, "date": DAY}
    assert durations.kept(before, command, run, 123, DAY).splitlines()[0] == before.splitlines()[0]


def test_a_command_that_is_not_there_is_refused() -> None:
    """It names those that are."""
    with pytest.raises(ValueError, match="name one of demo, test, and one of first, again"):
        durations.kept(durations.FILE.read_text(), "bench", "first", 1, DAY)


def test_the_minutes_of_a_run_are_those_of_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages run side by side, or one after the other; a part of a minute counts as one."""
    monkeypatch.setattr(places, "work", lambda: tmp_path)
    (tmp_path / "durations" / "test").mkdir(parents=True)
    for name, minute, seconds in (("tests", "00", 600), ("cluster", "00", 301), ("spark-4.2", 10, 301)):
        (tmp_path / "durations" / "test" / f"{name}.xml").write_text(SUITE.format(minute, seconds))
    assert durations.took("test") == 16


def test_a_run_that_left_no_files_asks_for_the_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo has no tests."""
    monkeypatch.setattr(places, "work", lambda: tmp_path)
    with pytest.raises(ValueError, match="give the minutes as the last word"):
        durations.took("demo")


def test_a_figure_that_was_not_measured_is_said_to_be_missing() -> None:
    """No number is made up."""
    shown = durations.table({"machine": "2 cores", "date": DAY, "demo": {"first": 40}, "test": {}})
    assert "| `make demo` | 40 minutes | not measured |" in shown
    assert "| `make test` | not measured | not measured |" in shown
