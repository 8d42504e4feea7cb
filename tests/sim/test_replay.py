"""Replaying a schedule: what it prints, and how it ends."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import replay
from click.testing import CliRunner

STORY, MUTANT = "a_bind_after_the_take_over", "a bind does not look at the generation"
PROGRAM = """
Falsifying example:
state = Protocol()
state.begin(habits=__import__("simulation.habits").habits.Habits(), lease=12.0, mortal=False, records=1, shards=1, start='TRIM_HORIZON', whole=True)
state.put(records=2, slot=0, together=False)
"""


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    """The program switches logging off for its process."""
    yield
    logging.disable(logging.NOTSET)


def test_a_story_is_told_step_by_step() -> None:
    done = CliRunner().invoke(replay.main, [STORY])
    assert done.exit_code == 0
    assert "commit consumer" in done.output
    assert done.output.rstrip().endswith("no invariant broke")


def test_a_story_under_a_mutant_names_the_invariant_that_broke() -> None:
    done = CliRunner().invoke(replay.main, [STORY, "--mutant", MUTANT])
    assert done.exit_code == 1
    assert "no invariant broke" not in done.output


def test_a_mutant_that_is_not_there_is_refused() -> None:
    done = CliRunner().invoke(replay.main, [STORY, "--mutant", "none"])
    assert done.exit_code == 2
    assert "--mutants" in done.output


def test_a_program_of_hypothesis_is_replayed(tmp_path: Path) -> None:
    (tmp_path / "program").write_text(PROGRAM)
    done = CliRunner().invoke(replay.main, ["--program", str(tmp_path / "program")])
    assert done.exit_code == 0
    assert "commit consumer" in done.output
