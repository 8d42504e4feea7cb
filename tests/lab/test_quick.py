"""Which tests a change asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_lab import places, quick
from sluice_lab.machine import parts

CASES = {
    "consumer/sluice_checkpoints/protocol/store.py": "tests/checkpoints/protocol",
    "consumer/sluice_consumer/config.py": "tests/consumer/test_config.py",
    "operator/sluice_operator/plan/rules.py": "tests/operator/plan",
    "lab/sluice_lab/places.py": "tests/lab",
    "charts/sluice/values.yaml": "tests/operator/helm",
    "tests/sim/test_stories.py": "tests/sim/test_stories.py",
}


@pytest.mark.parametrize(("changed", "test"), CASES.items())
def test_a_changed_file_asks_for_the_tests_of_its_room(tmp_path: Path, changed: str, test: str) -> None:
    """The folder of the room, or the file of a module that has no room."""
    there = tmp_path / test
    if test.endswith(".py"):
        there.parent.mkdir(parents=True)
        there.touch()
    else:
        there.mkdir(parents=True)
    assert quick.tests_of([changed], tmp_path) == [*quick.ALWAYS, test]


def test_a_file_without_tests_of_its_own_asks_only_for_those_of_the_whole(tmp_path: Path) -> None:
    """Headings, links and the layout are always looked at."""
    assert quick.tests_of(["README.md", "tests/gone/test_gone.py"], tmp_path) == list(quick.ALWAYS)


def test_the_tests_of_the_chart_are_where_a_changed_chart_looks_for_them() -> None:
    """In this repository, too."""
    assert "tests/operator/helm" in quick.tests_of(["charts/sluice/values.yaml"], places.REPO)


def test_a_lane_is_asked_for_until_it_has_passed_with_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine; a file more asks for it again."""
    monkeypatch.setenv("SLUICE_PARTS", str(tmp_path))
    monkeypatch.delenv(parts.BUILDS, raising=False)
    assert quick.asked_for() == [*quick.LANES]
    quick.passed("chart")
    assert quick.asked_for() == [name for name in quick.LANES if name != "chart"]
    monkeypatch.setitem(quick.LANES, "chart", (*quick.LANES["chart"], "README.md"))
    assert quick.asked_for() == [*quick.LANES]


@pytest.mark.parametrize("name", quick.LANES)
def test_the_files_that_ask_for_a_lane_are_there(name: str) -> None:
    assert [path for path in quick.LANES[name] if not (places.REPO / path).exists()] == []
