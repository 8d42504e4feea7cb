"""What `dev` prints of an exception of the user's: its words, and the lines of their code."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from sluice_checkpoints.errors import Refused
from sluice_consumer import sinks
from sluice_consumer.dev import program
from sluice_consumer.dev.program import CommandLine
from sluice_consumer.dev.session import DevSession

PIPELINE = """
def process(batch, info):
    return first(batch)


def first(batch):
    return batch[0]["nosuch"]
"""


def shown(error: Exception, entrypoint: str = "my_pipeline:process") -> str:
    out = io.StringIO()
    console = Console(file=out, width=500)
    DevSession(program.options(CommandLine(entrypoint), Path("/none")), console)._show(error)
    return out.getvalue()


def test_an_exception_is_shown_with_the_lines_of_the_users_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_pipeline.py").write_text(PIPELINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_pipeline", raising=False)
    from my_pipeline import process  # noqa: PLC0415 - it was just written

    with pytest.raises(KeyError) as raised:
        process([{"a": 1}], None)
    lines = shown(raised.value).splitlines()
    assert lines[0] == "KeyError: 'nosuch'"
    assert lines[1] == f'  at {tmp_path}/my_pipeline.py:7 in first: return batch[0]["nosuch"]'
    assert lines[2].startswith(f"  at {tmp_path}/my_pipeline.py:3 in process")


def test_of_a_built_in_sink_no_lines_are_shown() -> None:
    """Nobody who uses it can change them."""
    with pytest.raises(AttributeError) as raised:
        sinks.parquet(None, None)  # type: ignore[arg-type]
    assert "/sluice_consumer/" not in shown(raised.value, "sluice_consumer.sinks:parquet")


def test_a_refusal_is_shown_in_its_own_words() -> None:
    assert shown(Refused("pipeline.args.path: [missing]; set it")) == "Refused: pipeline.args.path: [missing]; set it\n"
