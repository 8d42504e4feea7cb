"""Every test is checked by mypy, once, and with helpers of its own."""

from __future__ import annotations

import pytest

from sluice_lab import typecheck
from sluice_lab.places import REPO


def test_every_test_is_in_one_group() -> None:
    """A file that no group has would not be checked."""
    groups = typecheck.grouped(typecheck.tests())
    assert sorted(path for files in groups.values() for path in files) == sorted(str(path.relative_to(REPO)) for path in REPO.glob("tests/**/*.py"))
    assert all(groups.values())


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("tests/sim/operator/conftest.py", "sim/operator"),
        ("tests/sim/test_replay.py", "sim"),
        ("tests/contract/spark/test_engine.py", "contract/spark"),
        ("tests/conftest.py", ""),
    ],
)
def test_the_innermost_group_has_a_file(path: str, group: str) -> None:
    assert typecheck.grouped([path])[group] == [path]
