"""What is built once for all checkouts of a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_lab.errors import LabError, MissingPartError
from sluice_lab.machine import docker, parts


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_PARTS", str(tmp_path))
    monkeypatch.delenv(parts.BUILDS, raising=False)


def tool(version: int) -> Path:
    return parts.part("tool", version, lambda folder: (folder / "made").write_text(str(version)))


def test_a_part_is_built_once_and_again_when_its_inputs_change() -> None:
    first = tool(1)
    (first / "made").write_text("not built again")
    assert (tool(1) / "made").read_text() == "not built again"
    assert (tool(2) / "made").read_text() == "2"


def test_what_could_not_be_built_whole_is_not_there() -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise LabError("the disk is full")

    with pytest.raises(LabError, match="the disk is full"):
        parts.part("tool", 1, fail)
    assert sorted(path.name for path in tool(1).iterdir()) == ["made"]


def test_a_run_of_tests_builds_and_installs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    there = tool(1)
    monkeypatch.setenv(parts.BUILDS, "no")
    assert tool(1) == there
    with pytest.raises(MissingPartError, match=r"tool is missing.*`python -m sluice_lab build`"):
        tool(2)
    with pytest.raises(MissingPartError, match="no-such-package is missing"):
        docker.apt_install("no-such-package", unless=("no-such-program",))
