"""Which tests a change asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_lab import places, quick

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
    there = tmp_path / test
    if test.endswith(".py"):
        there.parent.mkdir(parents=True)
        there.touch()
    else:
        there.mkdir(parents=True)
    assert quick.tests_of([changed], tmp_path) == [*quick.ALWAYS, test]


def test_a_file_without_tests_of_its_own_asks_only_for_those_of_the_whole(tmp_path: Path) -> None:
    assert quick.tests_of(["README.md", "tests/gone/test_gone.py"], tmp_path) == list(quick.ALWAYS)


def test_the_tests_of_the_chart_are_where_a_changed_chart_looks_for_them() -> None:
    assert "tests/operator/helm" in quick.tests_of(["charts/sluice/values.yaml"], places.REPO)
