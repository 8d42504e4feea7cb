"""What is built once for all checkouts of a user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluice_lab import places
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


def test_the_two_that_were_used_last_stay() -> None:
    for used, version in enumerate((1, 2, 1)):
        os.utime(tool(version), (used, used))
    third = tool(3)
    assert {path for path in third.parent.iterdir() if path.is_dir()} == {tool(1), third}


def test_what_was_left_over_counts_for_nothing() -> None:
    home = tool(1).parent
    for name in ("new", "old"):
        (home / name / "half").mkdir(parents=True)
    tool(2)
    assert (tool(1) / "made").exists()
    assert len({tool(1), tool(2), tool(3)} & set(home.iterdir())) == parts.KEPT


def test_a_part_that_is_there_waits_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    there = tool(1)
    monkeypatch.setattr(places, "lock", None)
    assert tool(1) == there


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
