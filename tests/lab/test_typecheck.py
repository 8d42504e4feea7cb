from __future__ import annotations

from sluice_lab import typecheck
from sluice_lab.places import REPO


def test_every_test_is_in_one_group_and_that_with_its_own_helpers() -> None:
    """A file that no group has would not be checked."""
    groups = typecheck.grouped(typecheck.tests())
    assert sorted(path for files in groups.values() for path in files) == sorted(
        str(path.relative_to(REPO)) for folder in ("tests", "bench") for path in (REPO / folder).rglob("*.py")
    )
    assert "tests/sim/operator/conftest.py" in groups["tests/sim/operator"]
    assert "tests/conftest.py" in groups["tests"]
