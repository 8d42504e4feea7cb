"""Which tests run in one process when several share the work (`pytest -n 4 --dist loadgroup`).

What is slow to start is started once: a Spark session, emulators. Tests that mostly wait are begun first, each in a process of its own.
Everything else is dealt by file, and the simulations by test.
"""

from __future__ import annotations

import pytest

ALONE = {  # they wait for leases to run out or for a whole consumer to end: minutes of wall, little CPU
    "test_streaming_deaths.py": "deaths",
    "test_demo_local.py": "demo",
    "test_ordinary_queries.py": "queries",
    "test_kcl_goes_on.py": "kcl",
}
SERVICES = ("dynamodb_endpoint", "dynalite_endpoint", "kinesis_local_endpoint", "kinesalite_endpoint")
FIRST = ("deaths", "queries", "spark", "demo", "services")


def deal(items: list[pytest.Item]) -> None:
    """Gives each test its group, and puts the groups that take longest first."""
    for item in items:
        if (group := group_of(item.path.name, item.path.as_posix(), getattr(item, "fixturenames", ()))) is not None:
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_rank)


def group_of(name: str, path: str, fixtures: tuple[str, ...] | list[str]) -> str | None:
    """The process that a test shares with others; None: whichever is free."""
    if name in ALONE:
        return ALONE[name]
    if "spark" in fixtures:
        return "spark"
    if any(service in fixtures for service in SERVICES):
        return "services"
    return None if "/sim/" in path else path


def _rank(item: pytest.Item) -> int:
    mark = item.get_closest_marker("xdist_group")
    group = mark.args[0] if mark else ""
    return FIRST.index(group) if group in FIRST else len(FIRST)
