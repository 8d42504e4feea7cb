"""The command line of `diagnose` over in-memory fakes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from diagnosing import DIAGNOSE, Scene

from sluice_checkpoints.cli import diagnose
from sluice_checkpoints.cli.main import main


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def call(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs the command over the scene; it leaves no termination message and changes no table."""
    log = tmp_path / "termination-log"
    monkeypatch.setenv("SLUICE_TERMINATION_LOG", str(log))
    monkeypatch.setattr(diagnose, "_sight", scene.sight)

    def run(*arguments: str) -> Result:
        before = copy.deepcopy(scene.sources.tables)
        result = CliRunner().invoke(main, [*DIAGNOSE, *arguments])
        assert scene.sources.tables == before
        assert not log.exists()
        return result

    return run
