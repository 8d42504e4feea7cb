"""The program of a group before its driver starts: which consumers may start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.checks import run as checks
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.group import program, shared_spark


def options(*paths: str) -> program.GroupOptions:
    return program.GroupOptions([Path(path) for path in paths], None, 0.25, None, 1.0)


@pytest.fixture(autouse=True)
def starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is a consumer that may start, but one whose name begins with "bad"."""

    def before_start(path: Path, *_: Any) -> tuple[Config, dict[str, str]]:
        if path.name.startswith("bad"):
            raise Refused("no stream")
        return Config(StreamConfig("s", "r"), CheckpointsConfig(f"table-{path.stem}"), PipelineConfig("m:f"), name=path.stem), {}

    monkeypatch.setattr(checks, "before_start", before_start)


def test_a_file_that_is_given_twice_is_refused_and_does_not_run_once() -> None:
    members, _, _ = program.checked(options("a.json", "a.json"))
    with pytest.raises(Refused, match=r"a\.json: name: a\.json has the same"):
        shared_spark.check(members)


def test_a_consumer_that_is_refused_keeps_no_other_from_its_start() -> None:
    members, refused, _ = program.checked(options("bad.json", "b.json"))
    assert [one.name for one in members] == ["b"]
    assert [ending.code for ending in refused] == [65]


def test_no_group_starts_without_a_consumer() -> None:
    with pytest.raises(Refused, match=r"no consumer can start; the first one, bad\.json: no stream"):
        program.checked(options("bad.json", "bad2.json"))
