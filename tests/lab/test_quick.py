"""`make quick` runs the tests of a changed file. One that it does not find is not run, and nothing says so."""

from __future__ import annotations

import pytest

from sluice_lab import places, quick

CASES = {
    "consumer/sluice_checkpoints/protocol/store.py": ["tests/checkpoints/protocol"],
    "consumer/sluice_consumer/config.py": ["tests/consumer/test_config.py"],
    "operator/sluice_operator/plan/rules.py": ["tests/operator/plan"],
    "lab/sluice_lab/places.py": ["tests/lab"],
    "charts/sluice/values.yaml": ["tests/operator/helm"],
    "tests/sim/test_stories.py": ["tests/sim/test_stories.py"],
    "tests/gone/test_gone.py": [],
}


@pytest.mark.parametrize(("changed", "tests"), CASES.items())
def test_a_changed_file_asks_for_the_tests_of_its_room(changed: str, tests: list[str]) -> None:
    assert quick.tests_of([changed], places.REPO) == [*quick.ALWAYS, *tests]
